"""`python -m runner.certify STUDY`: write down what the cells of a study left that repeat, to be checked later."""

import argparse
import sys
from pathlib import Path

from runner.certificate import Certificate
from runner.command import command
from runner.errors import StudyError, unwritable
from runner.report.outlet import print_lines
from runner.report.text import one_line
from runner.study import Study


@command
def main() -> int:
    """Write the certificate and print its statements; 2 after one line that says why there is none."""
    parser = argparse.ArgumentParser(prog="python -m runner.certify", description=__doc__)
    parser.add_argument("study", type=Path, help="the folder of a study")
    parser.add_argument(
        "--cell", action="append", default=[], help="only the cell with this id, or whose label begins so; repeatable"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("certificate.json"), metavar="FILE", help="default: %(default)s"
    )
    asked = parser.parse_args()
    from runner.analysis.certify import certificate_of  # takes its time, as scipy.stats does

    certificate = certificate_of(Study.open(asked.study), asked.cell)
    wrote = "replaced" if _write(certificate, asked.out) else "wrote"
    print_lines([*map(one_line, certificate.statements), f"{wrote} {asked.out}; {_next(certificate, asked.out)}"])
    return 0


def _next(certificate: Certificate, path: Path) -> str:
    if any(cell.config.get("phase") == "attach" for cell in certificate.cells):
        return f"attach again, and `python -m runner.compare {path} STUDY` holds the new study against it"
    return f"`python -m runner.check {path}` measures again"


def _write(certificate: Certificate, path: Path) -> bool:
    """Write it; a certificate that is there is replaced, and no other file. Whether one was. Raises StudyError."""
    if path.is_dir() or not path.parent.is_dir():  # an empty name is the current folder
        what = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise StudyError(f"--out {path}: {what}; name a file in a folder that is there, as certificate.json")
    replaced = path.exists()
    if replaced:
        try:
            Certificate.read(path)
        except StudyError as error:
            raise StudyError(f"--out {path}: another file is there; remove it, or name another one") from error
    try:
        certificate.write(path)
    except OSError as error:
        raise unwritable(path, error) from error
    return replaced


if __name__ == "__main__":
    sys.exit(main())
