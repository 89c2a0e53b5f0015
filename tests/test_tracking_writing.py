"""Many processes and one store: one writer a study at a time, and no run twice."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from factory import four_modes, make_cell
from mlflow.entities import Dataset, DatasetInput
from mlflow.store.tracking.dbmodels.models import SqlDataset
from sqlalchemy import event, make_url
from sqlalchemy.orm import Session
from tracked import CONTEXT, all_runs, attempt, find, new_store

from runner import tracking
from runner.analysis.summary import summarise
from runner.study import Study
from runner.tracking.sending import log_datasets
from runner.tracking.store import connect

PROCESSES = 8


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": 1}, [make_cell()])


def at_once(work: Callable[..., None], arguments: list[tuple[Any, ...]]) -> list[int | None]:
    """Do the work in as many processes, which begin at the same moment; their exit codes."""
    barrier = CONTEXT.Barrier(len(arguments))
    processes = [CONTEXT.Process(target=work, args=(barrier, *each)) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def open_and_send(barrier: Barrier, uri: str, folder: Path) -> None:
    """What a process of a study does with MLflow, all of it."""
    study = Study.open(folder)
    summary = summarise(study)
    barrier.wait(60)
    tracking.check(uri, study.cells())
    tracking.end_leftovers(uri)
    with tracking.writing(study):
        runs = tracking.open_study(uri, study)
    for record in study.records():
        with tracking.writing(study):
            tracking.send_trial(runs, study, record)
    with tracking.writing(study):
        tracking.send_missing(runs, study, study.records())
        tracking.send_summary(runs, study, summary, others=False)


def test_processes_of_one_study_make_each_run_once(tmp_path: Path) -> None:
    study, uri = four_modes(tmp_path / "study", 1), f"sqlite:///{tmp_path}/new/mlflow.db"
    assert at_once(open_and_send, [(uri, study.folder)] * PROCESSES) == [0] * PROCESSES
    runs = all_runs(connect(uri))
    levels = [run.data.tags["level"] for run in runs]
    assert (levels.count("study"), levels.count("cell"), levels.count("trial")) == (1, 4, 4)
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_different_studies_use_one_new_store_at_once(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/new/mlflow.db"
    folders = [four_modes(tmp_path / f"study {number}", 1).folder for number in range(PROCESSES)]
    assert at_once(open_and_send, [(uri, folder) for folder in folders]) == [0] * PROCESSES
    runs = all_runs(connect(uri))
    assert len(runs) == PROCESSES * (1 + 4 + 4)
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert [path.name for path in (tmp_path / "new").glob("*mlflow*")] == ["mlflow.db"]


@contextmanager
def faster(uri: str) -> Iterator[list[str]]:
    """Another process adds each data set just before this one does, after it looked whether it is there."""
    added: list[str] = []

    def add(session: Session, *_: object) -> None:
        with closing(sqlite3.connect(make_url(uri).database or "", timeout=60)) as database, database:
            for row in [row for row in session.new if isinstance(row, SqlDataset) and row.digest not in added]:
                values = ("other" + row.digest[:27], row.experiment_id, row.name, row.digest, "local", "{}")
                database.execute("insert into datasets values (?, ?, ?, ?, ?, ?, null, null)", values)
                added.append(row.digest)
                return

    event.listen(Session, "before_flush", add)
    try:
        yield added
    finally:
        event.remove(Session, "before_flush", add)


def test_data_that_another_study_adds_at_the_same_moment_are_listed(tmp_path: Path) -> None:
    uri, study = new_store(tmp_path / "store"), Study.ask(tmp_path / "study", {"rounds": 1}, [make_cell()])
    (cell,) = study.cells()
    record = attempt(study, cell)
    with faster(uri) as added, tracking.writing(study):
        runs = tracking.open_study(uri, study)
        tracking.send_trial(runs, study, record)
        parent = runs.cells[cell.id].parent
        data = [DatasetInput(Dataset("digits", digest, "local", "{}"), []) for digest in ("one", "two", "three")]
        log_datasets(runs.client, parent, data)
    assert len(added) == 4
    (trial,) = find(runs.client, "tags.level = 'trial'")
    assert [given.dataset.digest for given in trial.inputs.dataset_inputs] == added[:1]
    listed = runs.client.get_run(parent).inputs.dataset_inputs
    assert sorted(given.dataset.digest for given in listed) == ["one", "three", "two"]


def hold(barrier: Barrier, folder: Path, seconds: float) -> None:
    with tracking.writing(Study.open(folder)):
        barrier.wait(60)
        time.sleep(seconds)
        os._exit(9)  # as after kill -9: nothing is tidied up


def held(study: Study, seconds: float) -> Any:
    """A process that writes to MLflow for a study, and is killed after these seconds."""
    barrier = CONTEXT.Barrier(2)
    process = CONTEXT.Process(target=hold, args=(barrier, study.folder, seconds))
    process.start()
    barrier.wait(60)
    return process


def test_who_waits_too_long_is_told_who_writes(study: Study) -> None:
    process = held(study, 30)
    with pytest.raises(tracking.STORE_ERRORS, match=rf"process {process.pid} of \w+ on .* writes to it for this study"):
        tracking.writing(study, wait_s=0.2).__enter__()
    process.kill()
    process.join()


def test_a_copy_of_a_study_waits_for_the_original(study: Study, tmp_path: Path) -> None:
    copy = Study(shutil.copytree(study.folder, tmp_path / "copy"))
    other = Study.ask(tmp_path / "other", {"rounds": 1}, [make_cell()])
    with tracking.writing(study):
        with pytest.raises(tracking.STORE_ERRORS, match="another process writes to it for a copy of this study"):
            tracking.writing(copy, wait_s=0.2).__enter__()
        with tracking.writing(other, wait_s=0):
            pass
    with tracking.writing(copy, wait_s=0):
        pass


def test_where_no_lock_of_the_machine_can_be_made_a_study_is_sent_all_the_same(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("runner.device_lock.FOLDER", tmp_path / "file")
    with tracking.writing(study, wait_s=0):
        pass


def test_a_killed_writer_holds_nobody_up(study: Study) -> None:
    held(study, 0.5)
    with tracking.writing(study, wait_s=30):
        pass


def test_a_writer_leaves_no_name_behind_and_a_failure_lets_go(study: Study) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), tracking.writing(study, wait_s=0):
            raise KeyError
    assert [path.name for path in study.folder.glob(".mlflow*")] == [".mlflow-lock"]


@pytest.mark.slow
def test_twelve_hundred_trials(tmp_path: Path) -> None:
    """More than MLflow hands out a page, in one study."""
    study, uri = Study.ask(tmp_path / "study", {"rounds": 1200}, [make_cell()]), f"sqlite:///{tmp_path}/mlflow.db"
    for number in range(1200):
        attempt(study, make_cell(), number)
    for _ in range(2):
        with tracking.writing(study):
            runs = tracking.open_study(uri, study)
            began = time.monotonic()
            tracking.send_missing(runs, study, study.records())
            print(f"{time.monotonic() - began:.1f} s")
    assert (
        len({run.info.run_id for number in range(1200) for run in find(runs.client, f"tags.trial = '{number}'")})
        == 1200
    )
