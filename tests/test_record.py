"""Records: what was written is read again, and what is no record is an error."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from factory import Plant, make_cell, make_record

from runner.errors import StudyError
from runner.record import Outcome, Record


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_record_of_any_outcome_is_read_as_written(outcome: Outcome, tmp_path: Path) -> None:
    record = make_record(make_cell(), plant=Plant(outcomes={0: outcome}))
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_only_a_finished_trial_is_complete(outcome: Outcome) -> None:
    assert make_record(make_cell(), plant=Plant(outcomes={0: outcome})).complete is (outcome == "finished")


def test_a_figure_that_is_no_number_comes_back_as_none(tmp_path: Path) -> None:
    make_record(make_cell(), metrics={"loss": float("nan")}).write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json").metrics == {"loss": None}


def damaged(fields: dict[str, Any], how: str) -> dict[str, Any]:
    """A record's fields with one thing wrong."""
    if how == "other version":
        return fields | {"schema": 2}
    if how == "unknown field":
        return fields | {"colour": "red"}
    if how == "unknown figure":
        return fields | {"speed": fields["speed"] | {"colour": "red"}}
    if how == "missing figure":
        return fields | {"digests": {"initial": "0"}}
    return {key: value for key, value in fields.items() if key != how}


@pytest.mark.parametrize(
    "how", ["other version", "unknown field", "unknown figure", "missing figure", "outcome", "digests", "speed"]
)
def test_what_is_no_record_of_this_version_is_an_error_that_names_the_file(how: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell()).write(path)
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), how)))
    with pytest.raises(StudyError, match=str(path)):
        Record.read(path)
