"""`python -m runner.compare A B`: what two studies or certificates have in common bit by bit, and what parts them."""

import argparse
import sys
from pathlib import Path

from runner.command import command
from runner.errors import StudyError
from runner.report.outlet import print_lines

DIFFERS = 1


@command
def main() -> int:
    """Print it; 0 if every cell is bitwise the same, 1 if not, 2 after one line that says why nothing was compared."""
    parser = argparse.ArgumentParser(prog="python -m runner.compare", description=__doc__)
    parser.add_argument("first", type=Path, metavar="A", help="the folder of a study, or a certificate")
    parser.add_argument("second", type=Path, metavar="B", help="another one")
    parser.add_argument("--all", action="store_true", help="every cell and every change, not only the first lines")
    asked = parser.parse_args()
    from runner.analysis.comparison import compare_sides  # takes its time, as scipy.stats does
    from runner.analysis.side import side_at
    from runner.report.comparison import comparison_lines, nothing_words

    found = compare_sides(side_at(asked.first), side_at(asked.second))
    if not found.pairs:
        raise StudyError(nothing_words(found))
    print_lines(comparison_lines(found, asked.all))
    return 0 if found.same else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
