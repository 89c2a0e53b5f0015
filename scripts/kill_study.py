"""Kill studies at random moments, many times, and count what is lost: nothing may be. Needs neither pytest nor MLflow.

From the repository: python scripts/kill_study.py --kills 1000 --parallel 8 [--seed S]
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "faults")]

from killing import killed_studies  # noqa: E402 - found by the line above


def main() -> int:
    """Print a line of JSON after each study, the last of them with all counts; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=2, help="studies at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further study after so many")
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        counts = killed_studies(asked.kills, asked.parallel, seed, Path(folder), asked.minutes)
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
