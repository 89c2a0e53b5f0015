"""The study folder: made once, each trial claimed once, everything read back from disk."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from factory import Plant, four_modes, make_cell, make_record, make_series, make_study

from runner.errors import StudyError
from runner.study import Study, log_end, log_file, record_file, series_file, trial_file
from runner.trial import Trial

ASKED = {"rounds": 3, "version": "0.1.0"}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.create(tmp_path / "study", ASKED, [make_cell("benchmark"), make_cell("default")])


def test_a_study_is_opened_as_it_was_made(study: Study) -> None:
    again = Study.open(study.folder)
    assert [cell.config for cell in again.cells()] == [make_cell("benchmark").config, make_cell("default").config]
    assert again.asked().items() >= ASKED.items()
    assert again.records() == []


def test_a_folder_with_a_study_is_refused_and_stays_as_it_is(study: Study) -> None:
    before = study.asked()
    with pytest.raises(StudyError, match=str(study.folder)):
        Study.create(study.folder, {"rounds": 9}, [make_cell("deterministic")])
    assert study.asked() == before
    assert len(study.cells()) == 2


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=str(tmp_path / "file" / "study")):
        Study.create(tmp_path / "file" / "study", ASKED, [make_cell()])


def test_a_folder_without_a_study_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=str(tmp_path)):
        Study.open(tmp_path)


def test_studies_in_folders_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    studies = [Study.create(tmp_path / parent / "study", ASKED, [make_cell()]) for parent in "ab"]
    assert len({study.asked()["id"] for study in studies}) == 2


def test_a_trial_is_claimed_once_however_many_ask(study: Study) -> None:
    trial = Trial.of(make_cell("default"), 1, 0, "cpu")
    together = Barrier(8)

    def claim(_: int) -> Path | None:
        together.wait()
        return study.claim(trial)

    with ThreadPoolExecutor(8) as pool:
        claimed = [folder for folder in pool.map(claim, range(8)) if folder]
    assert claimed == [study.trial_folder(trial.cell, 1)]
    assert Trial.read(trial_file(claimed[0])) == trial


def test_trials_of_other_numbers_and_cells_are_claimed_apart(study: Study) -> None:
    trials = [Trial.of(cell, number, 0, "cpu") for cell in study.cells() for number in range(3)]
    assert len({study.claim(trial) for trial in trials} - {None}) == 6


def test_a_trial_carries_the_seeds_of_its_number() -> None:
    cell = make_cell(seeds={"base": 0, "vary": ["order"]})
    one, other = Trial.of(cell, 0, 0, "cpu"), Trial.of(cell, 1, 0, "cpu")
    assert {name for name in one.seeds if one.seeds[name] != other.seeds[name]} == {"order"}


def test_records_come_by_number_and_position(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=3)
    places = [(record.number, record.position) for record in study.records()]
    assert places == [(number, position) for number in range(3) for position in range(4)]


def test_a_claimed_trial_has_no_record_yet(study: Study) -> None:
    cell = study.cells()[0]
    folder = study.claim(Trial.of(cell, 0, 0, "cpu"))
    assert folder is not None
    assert study.record(cell.id, 0) is None
    assert study.records() == []
    record = make_record(cell)
    record.write(record_file(folder))
    assert study.record(cell.id, 0) == record
    assert study.records() == [record]


def test_a_record_may_be_without_series(study: Study) -> None:
    cell = study.cells()[0]
    folder = study.claim(Trial.of(cell, 0, 0, "cpu"))
    assert folder is not None
    assert study.series(make_record(cell)) is None
    make_series().write(series_file(folder))
    found = study.series(make_record(cell))
    assert found is not None
    assert (found.step_ms == make_series().step_ms).all()


def test_a_damaged_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    path = record_file(study.trial_folder(study.cells()[2].id, 0))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StudyError, match=str(path)):
        study.records()


def test_the_end_of_a_log_is_its_last_characters(tmp_path: Path) -> None:
    log_file(tmp_path).write_text("ä" * 3000 + "the error\n")
    assert log_end(tmp_path, size=14) == "äääääthe error"
    assert log_end(tmp_path / "nowhere") == ""


def test_the_end_of_a_crash_is_the_error_not_the_list_of_modules(tmp_path: Path) -> None:
    modules = ", ".join(f"package.module_{number}" for number in range(300))
    log_file(tmp_path).write_text(f"Fatal Python error: Aborted\n\nExtension modules: {modules} (total: 300)\n")
    assert log_end(tmp_path) == "Fatal Python error: Aborted"


def test_a_long_log_is_not_read_as_a_whole_and_may_begin_within_a_character(tmp_path: Path) -> None:
    log_file(tmp_path).write_bytes("ä".encode() * 1000 + b"x")
    assert log_end(tmp_path, size=10) == "äääääääääx"


def test_a_folder_with_other_files_is_not_taken_for_a_study(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("my own")
    with pytest.raises(StudyError, match="holds other files"):
        Study.create(tmp_path, {}, [make_cell()])
    assert (tmp_path / "report.md").read_text() == "my own"
    assert not (tmp_path / "cells").exists()


def test_a_copy_of_a_trial_set_aside_is_no_trial(tmp_path: Path) -> None:
    made = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=2)
    (folder,) = (tmp_path / "study" / "cells").iterdir()
    shutil.copytree(folder / "trial-001", folder / "trial-001.bak")
    assert len(made.records()) == 2
