"""Plant noise into every operation, one after the other, then train many times with nothing planted: what is named?

From the repository: python scripts/planted_faults.py [--trials 67]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from noisy_trainings import WAYS, WORKLOADS, planted_everywhere  # noqa: E402 - found by the line above

from runner.analysis.traces import compare  # noqa: E402
from runner.study import Study  # noqa: E402

SHORT = ["probe=ops", "probe.repeat=true", "train.steps=4", "train.batch_size=16", "threads=1", "tracking=off"]


def main() -> int:
    """Print a line of JSON after each model; 1 if an operation was not named alone, or one named without a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=67, help="clean trials of each model")
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for line in chain(clean(asked.trials, Path(folder)), planted(Path(folder))):
            print(json.dumps(line), flush=True)
            wrong += line["wrong"]
    return 1 if wrong else 0


def clean(trials: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Train the shipped models in processes of their own, with nothing planted; `wrong` counts what was named."""
    words = ["model=resnet,unet,lstm", f"trials={trials}", *SHORT, f"study={folder / 'clean'}"]
    subprocess.run([sys.executable, "-m", "runner", "-m", *words], check=True, stdout=sys.stderr)
    study = Study.open(folder / "clean")
    summaries = {one["cell"]: one for one in json.loads(study.summary_json.read_text())["cells"]}
    for cell in study.cells():
        records = [record for record in study.records() if record.cell == cell.id]
        traces = [trace for trace in map(study.trace, records) if trace]
        compared = compare(traces)
        yield {
            "planted": "nothing",
            "model": cell.config["model"]["name"],
            "trials": compared.trials,
            "operations": compared.operations,
            "repeated": sum(one.repeated is not None for one in traces[0].operations),
            "wrong": len(compared.findings) + (summaries[cell.id]["traces"] is not None),
            "torch": records[0].environment["torch"],
            "cpu": records[0].environment["cpu"],
        }


def planted(folder: Path) -> Iterator[dict[str, Any]]:
    """Plant noise in this process; `wrong` counts where another answer came than the planted operation alone."""
    torch.set_num_threads(1)
    for name in WORKLOADS:
        for again, how in WAYS:
            count, wrong = planted_everywhere(folder, name, again, how)
            yield {"planted": how, "model": name, "repeat": again, "operations": count, "wrong": len(wrong)}


if __name__ == "__main__":
    sys.exit(main())
