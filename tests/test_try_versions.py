"""What scripts/try_versions.py tries, what it leaves out and says so, and its page."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import try_versions
from try_versions import Attempt, Row, attempts, interpreters, kept, last_line, line, page, requirements, tried, why_not

WORKS = Row("lowest mlflow", "works", {"python": "3.11.7", "torch": "2.14.1", "mlflow": "3.9.0"}, 41.2, 84.0)


def test_the_lowest_versions_are_those_of_the_package() -> None:
    lowest = requirements()
    assert set(try_versions.TRIED) < set(lowest)
    assert all(version[0].isdigit() for version in lowest.values())


def test_lowest_and_newest_of_each_package_are_tried_and_every_other_interpreter() -> None:
    found = {one.what: one for one in attempts()}
    assert found["lowest mlflow"].requirements == (f"mlflow=={requirements()['mlflow']}",)
    assert found["newest hydra-core"].requirements == ("hydra-core",)
    assert [one.partition("==")[0] for one in found["lowest torch"].requirements] == ["torch", "torchvision"]
    assert [what for what in found if what.startswith("Python")] == [f"Python {one}" for one, _ in interpreters()]
    assert "{}.{}".format(*sys.version_info) not in dict(interpreters())


@pytest.mark.parametrize(
    ("attempt", "whole", "only", "why"),
    [
        (Attempt("lowest mlflow", "python"), False, [], ""),
        (Attempt("lowest mlflow", "python"), False, ["mlflow"], ""),
        (Attempt("lowest mlflow", "python"), False, ["torch"], "not tried: not asked for"),
        (Attempt("Python 3.13", "python", whole=True), False, ["Python"], "not tried: needs a whole environment"),
        (Attempt("Python 3.13", "python", whole=True), True, ["Python"], ""),
    ],
)
def test_what_is_left_out_has_its_reason(attempt: Attempt, whole: bool, only: list[str], why: str) -> None:
    found = why_not(attempt, whole, only)
    assert found.startswith(why) if why else found == ""


def test_a_page_keeps_what_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "versions.md"
    assert kept(path) == kept(None) == {}
    lines = [line(WORKS), line(Row("lowest torch", "not tried: not asked for", {}))]
    path.write_text(page(lines))
    assert kept(path)["lowest mlflow"] == lines[0]
    assert "lowest torch" not in kept(path)
    assert lines[0].startswith("| lowest mlflow | works | 3.11.7 | 2.14.1 | - | - | 3.9.0 | 41 | 84 | 20")
    assert lines[1] == "| lowest torch | not tried: not asked for | - | - | - | - | - | - | - | - |"


def test_an_environment_that_cannot_be_made_is_a_row(tmp_path: Path) -> None:
    attempt = Attempt("nothing", sys.executable, ("/nowhere/to-be-found.whl",))
    row = tried(attempt, tmp_path / "ours.whl", tmp_path / "attempt")
    assert row.outcome.startswith("fails: ") and row.install_s is None
    assert not (tmp_path / "attempt").exists()


def test_the_last_line_says_what_went_wrong() -> None:
    assert last_line("first\nlast\n\n") == "last"
    assert last_line(" \n") == "nothing was said"
