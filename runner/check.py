"""`python -m runner.check CERTIFICATE [trials=3]`: measure a certificate's cells again, and say whether it holds.

It ends with 0 if it holds, 1 if it differs, 2 if it was refused or could not be measured.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.certificate import Certificate
from runner.command import REFUSED, command
from runner.errors import StudyError
from runner.remeasure import remeasure, unfit
from runner.report.outlet import print_lines
from runner.study import Study

DIFFERS = 1
TRIALS = 3
# What says where and how often is measured. Threads are part of a cell: with others the cell is another one.
ALLOWED = (
    *("trials", "study", "device", "threads", "timeout", "exclusive", "retry"),
    *("dataset.root", "dataset.path", "dataset.download"),
)


@command
def main() -> int:
    """Measure and print the answer, a line a cell that holds; what differs comes with the likely cause first."""
    parser = argparse.ArgumentParser(prog="python -m runner.check", description=__doc__)
    parser.add_argument("certificate", type=Path, help="a file that runner.certify made")
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help=f"of these keys: {', '.join(ALLOWED)}")
    asked = parser.parse_args()
    certificate = Certificate.read(asked.certificate)
    folder, words = _given(asked.words)
    _checkable(certificate, asked.certificate)
    _unused(folder)
    code = remeasure(certificate, folder, words)
    if code:
        print(f"cannot be measured: the study ended with {code}, see above and {folder}", file=sys.stderr)
        return code if code > 128 else REFUSED
    return _answer(certificate, str(asked.certificate), folder)


def _given(words: Sequence[str]) -> tuple[Path, list[str]]:
    """The folder of the new study, and the other words of its command line. Raises StudyError for any other key."""
    from runner.job import new_study

    given = {}
    allowed = ", ".join(f"{one}=..." for one in ALLOWED)
    for word in words:
        key, equals, value = word.partition("=")
        if key not in ALLOWED or not equals:
            raise StudyError(
                f"{word}: a check takes one certificate and these keys: {allowed}; the rest is the certificate's"
            )
        if key in given:
            raise StudyError(f"{word}: {key} is there already; give each of these at most once: {allowed}")
        given[key] = value
    folder = given.pop("study", "") or new_study()
    given.setdefault("trials", str(TRIALS))
    return Path(folder).absolute(), [f"{key}={value}" for key, value in given.items()]


def _checkable(certificate: Certificate, path: Path) -> None:
    """Raise StudyError for a cell that cannot be measured as it is."""
    for place, cell in enumerate(certificate.cells):
        if cell.config.get("phase") == "attach":
            way_out = "measure it with `python -m runner.attach` again, and use `python -m runner.compare`"
            raise StudyError(
                f"{path}: {cell.label} is a script of its own, which cannot be started from here; {way_out}"
            )
        wrong = unfit(cell.config)
        if wrong:
            way_out = "make the certificate again with `python -m runner.certify STUDY`"
            raise StudyError(f"{path}: cells.{place}.config {wrong}, so this cell cannot be measured; {way_out}")


def _unused(folder: Path) -> None:
    """Raise StudyError for a study that has trials: of another day, other code, or those the certificate is made of."""
    if Study(folder).record_files():
        remedy = "also after one that was broken off; name a new folder, or none"
        raise StudyError(f"study={folder}: has trials already, and a check measures anew, {remedy}")


def _answer(certificate: Certificate, name: str, folder: Path) -> int:
    """Print what came out; the exit code."""
    from runner.analysis.comparison import compare_sides  # takes its time, as scipy.stats does
    from runner.analysis.side import certified, side_of
    from runner.report.check import check_lines

    found = compare_sides(certified(certificate, name), side_of(Study.open(folder)))
    print_lines(check_lines(found))
    if found.alone[0] or found.ambiguous[0] or found.sides[1].lost:
        return REFUSED
    changed = found.alone[1] or found.ambiguous[1]  # the code or the environment, from one trial to the next
    return DIFFERS if changed or found.of("differs") or found.of("unsteady") else 0


if __name__ == "__main__":
    sys.exit(main())
