"""Evidence: which records can be used, and how many are missing."""

import shutil
from pathlib import Path

import numpy as np
from composed import settings
from factory import four_modes, make_series

from runner.analysis.evidence import Evidence
from runner.layout import series_file
from runner.plan import USUAL


def test_a_study_without_a_plan_is_answered_for_the_usual_one(tmp_path: Path) -> None:
    assert Evidence.of(four_modes(tmp_path / "study", rounds=2)).question.plan == USUAL
    assert settings().plan == USUAL


def test_missing_trials_are_counted_by_cell(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=4)
    cells = [cell.id for cell in study.cells()]
    for number in (1, 3):
        shutil.rmtree(study.trial_folder(cells[2], number))
    evidence = Evidence.of(study)
    assert [evidence.missing(cell) for cell in cells] == [0, 0, 2, 0]
    assert (len(evidence.records), evidence.damaged) == (14, [])


def test_a_series_that_was_changed_sets_its_trial_aside(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=2)
    path = series_file(study.trial_folder(study.cells()[1].id, 0))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    evidence = Evidence.of(study)
    (message,) = evidence.damaged
    assert message.startswith(f"{path}: ") and len(evidence.records) == 7


def test_a_series_whose_parts_do_not_go_together_sets_its_trial_aside(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=2)
    path = series_file(study.trial_folder(study.cells()[0].id, 1))
    make_series(step_ms=np.zeros(3)).write(path)
    evidence = Evidence.of(study)
    (message,) = evidence.damaged
    assert "the steps differ in number" in message and len(evidence.records) == 7


def test_a_record_without_a_series_can_be_used(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=2)
    series_file(study.trial_folder(study.cells()[0].id, 1)).unlink()
    assert len(Evidence.of(study).records) == 8
