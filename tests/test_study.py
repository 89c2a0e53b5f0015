"""The study folder: made once, each trial claimed once, everything read back from disk."""

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from factory import Plant, four_modes, make_cell, make_record, make_series, make_study

from runner.errors import StudyError
from runner.kernel_use import KernelUse
from runner.layout import kernels_file, record_file, series_file, trace_file, trial_file
from runner.study import Study
from runner.trace import Trace
from runner.trial import Trial

ASKED = {"rounds": 3, "version": "0.1.0"}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", ASKED, [make_cell("benchmark"), make_cell("default")])


def test_a_study_is_opened_as_it_was_made(study: Study) -> None:
    again = Study.open(study.folder)
    assert [cell.config for cell in again.cells()] == [make_cell("benchmark").config, make_cell("default").config]
    assert again.asked().items() >= ASKED.items()
    assert again.records() == []


CELLS = ["benchmark", "default"]


def test_a_study_of_another_question_is_refused_with_the_difference_and_stays_as_it_is(study: Study) -> None:
    before = study.asked()
    with pytest.raises(StudyError, match=f"{study.folder}: asks another question: cudnn.benchmark is false,true there"):
        Study.ask(study.folder, {"rounds": 9}, [make_cell("default")])
    other = [make_cell(mode, model={"name": "resnet", "depth": 10}) for mode in CELLS]
    with pytest.raises(StudyError, match=r"asks another question: model\.depth is 18 there, 10 here; ask the same"):
        Study.ask(study.folder, {"rounds": 9}, other)
    assert study.asked() == before
    assert len(study.cells()) == 2


def test_the_same_question_continues_the_study_and_more_rounds_make_it_longer(study: Study) -> None:
    before = study.asked()
    again = Study.ask(study.folder, {"rounds": 2, "version": "9"}, [make_cell(mode) for mode in reversed(CELLS)])
    assert again.asked() == before
    Study.ask(study.folder, {"rounds": 10}, [make_cell(mode) for mode in CELLS])
    assert study.asked() == before | {"rounds": 10, "looks": [3, 10]}


def test_another_plan_replaces_the_one_that_was_and_changes_nothing_else(study: Study) -> None:
    before, cells = study.asked(), study.cells()
    for steps in (500, 700):
        Study.ask(study.folder, {"rounds": 9, "plan": {"steps": steps}}, cells, lengthen=False)
        assert study.asked() == before | {"plan": {"steps": steps}}
    Study.ask(study.folder, {"rounds": 3}, cells)
    assert study.asked()["plan"] == {"steps": 700}


def test_whether_a_study_is_there_is_told_without_making_one(study: Study, tmp_path: Path) -> None:
    assert study.asks(list(reversed(study.cells())))
    with pytest.raises(StudyError, match="asks another question"):
        study.asks(study.cells()[:1])
    assert not Study(tmp_path / "none").asks(study.cells())
    assert not (tmp_path / "none").exists()


def test_a_study_that_grows_has_its_last_length_for_its_look(study: Study) -> None:
    for rounds in (4, 5, 2):
        study.lengthen(rounds, [3])
    assert (study.asked()["rounds"], study.looks) == (5, [3, 5])


def test_many_processes_that_ask_at_once_make_one_study(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(Study.ask, tmp_path / "study", ASKED, [make_cell()]) for _ in range(8)]
    assert len({one.result().asked()["id"] for one in asked}) == 1


def test_a_study_that_was_broken_off_while_it_was_made_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "study" / "cells" / make_cell().id).mkdir(parents=True)
    assert Study.ask(tmp_path / "study", ASKED, [make_cell()]).cells() == [make_cell()]


def test_a_trial_that_is_done_again_leaves_its_first_attempt_on_disk_and_counts_once(study: Study) -> None:
    first, second = (Trial.of(make_cell(), 0, 0, "cpu") for _ in range(2))
    for attempt in (first, second):
        study.set_aside(attempt.cell, 0)
        folder = study.claim(attempt, "me")
        assert folder is not None
        make_record(make_cell(), process={"claim": attempt.claim}).write(record_file(folder))
    (record,) = study.records()
    assert record.process["claim"] == second.claim
    kept = study.trial_folder(first.cell, 0).with_name(f"trial-000.{first.claim}")
    assert record_file(kept).is_file()


def test_a_record_that_was_moved_to_another_trial_is_named(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    one, other = (study.trial_folder(cell.id, 0) for cell in study.cells()[:2])
    shutil.copy(record_file(one), record_file(other))
    assert len(study.records()) == 3
    assert str(record_file(other)) in study.found().damaged[0]


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=str(tmp_path / "file" / "study")):
        Study.ask(tmp_path / "file" / "study", ASKED, [make_cell()])


def test_a_folder_without_a_study_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=str(tmp_path)):
        Study.open(tmp_path)


def test_studies_in_folders_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    studies = [Study.ask(tmp_path / parent / "study", ASKED, [make_cell()]) for parent in "ab"]
    assert len({study.asked()["id"] for study in studies}) == 2


def test_a_trial_is_claimed_once_however_many_ask(study: Study) -> None:
    attempts = [Trial.of(make_cell("default"), 1, 0, "cpu") for _ in range(8)]
    together = Barrier(8)

    def claim(attempt: Trial) -> Path | None:
        together.wait()
        return study.claim(attempt, "me")

    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(claim, attempts))
    ((winner, folder),) = [(one, took) for one, took in zip(attempts, claimed, strict=True) if took]
    assert folder == study.trial_folder(winner.cell, 1)
    assert Trial.read(trial_file(folder)) == winner


def test_trials_of_other_numbers_and_cells_are_claimed_apart(study: Study) -> None:
    trials = [Trial.of(cell, number, 0, "cpu") for cell in study.cells() for number in range(3)]
    assert len({study.claim(trial, "me") for trial in trials} - {None}) == 6


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
    folder = study.claim(Trial.of(cell, 0, 0, "cpu"), "me")
    assert folder is not None
    assert study.record(cell.id, 0) is None
    assert study.records() == []
    record = make_record(cell)
    record.write(record_file(folder))
    assert study.record(cell.id, 0) == record
    assert study.records() == [record]


def test_a_record_may_be_without_series(study: Study) -> None:
    cell = study.cells()[0]
    folder = study.claim(Trial.of(cell, 0, 0, "cpu"), "me")
    assert folder is not None
    assert study.series(make_record(cell)) is None
    assert study.series_part(make_record(cell), "loss") is None
    make_series().write(series_file(folder))
    found = study.series(make_record(cell))
    assert found is not None
    assert (found.step_ms == make_series().step_ms).all()
    part = study.series_part(make_record(cell), "loss")
    assert part is not None and len(part) == 1 and (part[0] == make_series().loss).all()


def test_what_a_probe_left_is_read_and_a_damaged_file_is_named(study: Study) -> None:
    cell = study.cells()[0]
    folder = study.claim(Trial.of(cell, 0, 0, "cpu"), "me")
    assert folder
    record = make_record(cell)
    assert (study.trace(record), study.kernels(record)) == (None, None)
    trace = Trace("ops", cell.id, 0, 2, ())
    trace.write(trace_file(folder))
    assert study.trace(record) == trace
    KernelUse(cell.id, 0, 2, "cpu", (), None).write(kernels_file(folder))
    for file, read in ((trace_file(folder), study.trace), (kernels_file(folder), study.kernels)):
        assert read(record) is not None
        study.trial_folder(cell.id, 1).mkdir(exist_ok=True)
        file.rename(study.trial_folder(cell.id, 1) / file.name)
        with pytest.raises(StudyError, match=f"{file.name}: is of trial 0 of cell {cell.id}; it was moved here"):
            read(make_record(cell, 1))
        file.write_bytes(b"no trace")
        with pytest.raises(StudyError, match=str(file)):
            read(record)


def test_a_capture_is_no_trial(study: Study) -> None:
    cell = study.cells()[0]
    folder = study.capture_folder(cell.id, 0)
    assert folder.parent == study.trial_folder(cell.id, 0).parent
    folder.mkdir(parents=True)
    make_record(cell).write(record_file(folder))
    assert study.records() == []


def test_a_damaged_record_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    path = record_file(study.trial_folder(study.cells()[2].id, 0))
    path.write_bytes(path.read_bytes()[:100])
    found = study.found()
    assert len(found.records) == 3
    (message,) = found.damaged
    assert str(path) in message
    with pytest.raises(StudyError, match=str(path)):
        study.record(study.cells()[2].id, 0)


def test_a_record_that_nobody_may_read_is_named_and_one_that_is_gone_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    closed, gone = (record_file(study.trial_folder(cell.id, 0)) for cell in study.cells()[:2])
    stat, read_bytes = os.stat, Path.read_bytes

    def stat_of(path, *arguments, **options):
        if os.fspath(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *arguments, **options)

    def bytes_of(path):
        stat_of(path)
        return read_bytes(path)

    monkeypatch.setattr(os, "stat", stat_of)
    monkeypatch.setattr(Path, "read_bytes", bytes_of)
    gone.unlink()
    found = study.found()
    assert (len(found.records), found.damaged) == (
        2,
        [f"{closed}: cannot be read (Permission denied); restore it or set it aside"],
    )


def test_a_folder_of_trials_that_nobody_may_look_into_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    closed, scandir = study.cell_folder(study.cells()[0].id), os.scandir

    def look(path):
        if os.fspath(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", look)
    with pytest.raises(PermissionError, match=str(closed)):
        study.records()


def test_a_folder_with_other_files_is_not_taken_for_a_study(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("my own")
    with pytest.raises(StudyError, match="holds other files"):
        Study.ask(tmp_path, {}, [make_cell()])
    assert (tmp_path / "report.md").read_text() == "my own"
    assert not (tmp_path / "cells").exists()


def test_a_copy_of_a_trial_set_aside_is_no_trial(tmp_path: Path) -> None:
    made = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=2)
    (folder,) = (tmp_path / "study" / "cells").iterdir()
    shutil.copytree(folder / "trial-001", folder / "trial-001.bak")
    assert len(made.records()) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [("looks", "abc"), ("looks", [2, None]), ("cells", 5), ("cells", [[1]]), ("rounds", -5), ("plan", 3)],
)
def test_a_damaged_question_is_one_message(field: str, value: object, study: Study) -> None:
    path = study.folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(StudyError, match=f"study.json: has no usable {field}; restore it"):
        Study.ask(study.folder, {"rounds": 9}, [make_cell(mode) for mode in CELLS])
