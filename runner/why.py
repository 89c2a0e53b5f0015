"""`python -m runner.why STUDY`: how far down the trials of each cell are equal, what parts them, and what to try."""

import argparse
import sys
from pathlib import Path
from typing import Any

from runner.command import command
from runner.report.outlet import print_lines
from runner.study import Study


@command
def main() -> int:
    """Print the chain of evidence, or write a repro file; 2 after one line that says why there is none."""
    parser = argparse.ArgumentParser(prog="python -m runner.why", description=__doc__)
    parser.add_argument("study", type=Path, help="the folder of a study")
    parser.add_argument("--repro", type=Path, metavar="FILE", help="write a Python file that shows a mismatch alone")
    parser.add_argument("--cell", metavar="CELL", help="of the cell with this id, or whose label begins so")
    parser.add_argument("--operation", type=int, metavar="N", help="of the operation with this index; else the first")
    asked = parser.parse_args()
    if asked.repro is None and (asked.operation, asked.cell) != (None, None):
        parser.error("--operation and --cell are for --repro FILE")
    study = Study.open(asked.study)
    print_lines([repro(study, asked.repro, asked.operation, asked.cell)] if asked.repro else told(study))
    return 0


def told(study: Study) -> list[str]:
    """The chain of evidence of every cell."""
    from runner.analysis.summary import summarise  # takes its time, as scipy.stats does
    from runner.report.chain import chain

    return chain(summarise(study), _command(study), str(study.folder))


def _command(study: Study) -> list[str]:
    """The command that made the study; the bare one where it does not say."""
    command: Any = study.asked().get("command")
    sound = isinstance(command, list) and all(isinstance(word, str) for word in command)
    return command if sound and command else ["python", "-m", "runner"]


def repro(study: Study, path: Path, index: int | None, cell: str | None) -> str:
    """Write a file that shows a mismatch with PyTorch alone."""
    from runner.repro import write_repro

    write_repro(study, path, index, cell)
    return f"wrote {path}"


if __name__ == "__main__":
    sys.exit(main())
