"""Trials: what a process is told is what it reads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from factory import make_cell

from runner.errors import StudyError
from runner.trial import Trial

TRIAL = Trial.of(make_cell(), 3, 1, "cpu")


@pytest.mark.parametrize("trial", [TRIAL, replace(TRIAL, capture=(0, 17, 411))])
def test_a_trial_is_read_as_it_was_written(trial: Trial, tmp_path: Path) -> None:
    trial.write(tmp_path / "trial.json")
    assert Trial.read(tmp_path / "trial.json") == trial


def test_a_trial_keeps_no_operation_unless_it_is_told_to(tmp_path: Path) -> None:
    TRIAL.write(tmp_path / "trial.json")
    told = json.loads((tmp_path / "trial.json").read_text())
    assert told.pop("capture") == []
    (tmp_path / "trial.json").write_text(json.dumps(told))
    assert Trial.read(tmp_path / "trial.json").capture == ()


@pytest.mark.parametrize("capture", [5, "17", ["17"], [1.5], None])
def test_what_is_no_index_of_an_operation_is_named(capture: object, tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    TRIAL.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"capture": capture}))
    with pytest.raises(StudyError, match=r"trial\.json: capture"):
        Trial.read(path)
