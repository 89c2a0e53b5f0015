"""`python -m runner.report STUDY`: rebuild the reports of a study from its records and print the table."""

import argparse
import sys
from pathlib import Path

from runner.errors import StudyError
from runner.report import write_report
from runner.report.terminal import show
from runner.study import Study


def main() -> int:
    """Rebuild and print; 0, or 2 after one line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m runner.report", description=__doc__)
    parser.add_argument("study", type=Path, help="the folder of a study")
    study = parser.parse_args().study
    try:
        show(write_report(Study.open(study)))
    except (StudyError, OSError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
