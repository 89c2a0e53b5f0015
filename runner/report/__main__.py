"""`python -m runner.report STUDY`: rebuild the reports of a study from its records and print the table."""

import argparse
import sys
from pathlib import Path
from typing import Any

from runner.command import command
from runner.report import write_report
from runner.report.terminal import show
from runner.report.text import one_line
from runner.report.why import damaged_probes
from runner.study import Study

DAMAGED = 1


@command
def main() -> int:
    """Rebuild and print; 1 if something damaged was set aside, 2 after one line that says why there is no report."""
    parser = argparse.ArgumentParser(prog="python -m runner.report", description=__doc__)
    parser.add_argument("study", type=Path, help="the folder of a study")
    folder = parser.parse_args().study
    summary: dict[str, Any] = write_report(Study.open(folder))
    show(summary, folder)
    damaged = [*summary["damaged"], *damaged_probes(summary)]
    for message in damaged:
        print(one_line(message), file=sys.stderr)
    return DAMAGED if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
