"""Runs of studies whose processes were killed: which are ended, and which are not touched."""

import shutil
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from factory import make_cell
from mlflow.tracking import MlflowClient
from tracked import CONTEXT, all_runs, attempt, find, send_half, states, upload

from runner import tracking
from runner.owner import Owner
from runner.study import Study
from runner.tracking import store
from runner.tracking.runs import StudyRuns, set_tags

CELL = make_cell()
EMPTY: dict[str, Any] = {"environments": [], "cells": [], "recommendations": [], "recommendation": {}}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": 2}, [CELL])


def killed(uri: str, study: Study) -> StudyRuns:
    """Send as a process does that is killed while it sends its first trial."""
    runs = tracking.open_study(uri, study)
    send_half(runs, study, attempt(study, CELL))
    return runs


def state_of_all(client: MlflowClient) -> set[str]:
    return {run.info.status for run in all_runs(client)}


def works(study: Study) -> None:
    """Let this process work on the study."""
    owner = Owner.here()
    study.owner_file(owner.name).parent.mkdir(exist_ok=True)
    owner.write(study.owner_file(owner.name))


def tags_of(runs: StudyRuns, **tags: str) -> None:
    set_tags(runs.client, runs.cells[CELL.id].parent, tags)


def test_the_runs_of_a_study_without_processes_end(uri: str, study: Study) -> None:
    client = killed(uri, study).client
    assert state_of_all(client) == {"RUNNING"}
    tracking.end_leftovers(uri)
    assert state_of_all(client) == {"KILLED"}


def work_on(barrier: Barrier, uri: str, folder: Path) -> None:
    study = Study.open(folder)
    works(study)
    with tracking.writing(study):
        tracking.open_study(uri, study)
        barrier.wait(60)
        barrier.wait(60)


def test_a_process_is_really_killed(uri: str, study: Study) -> None:
    barrier, client = CONTEXT.Barrier(2), store.connect(uri)
    process = CONTEXT.Process(target=work_on, args=(barrier, uri, study.folder))
    process.start()
    barrier.wait(60)
    tracking.end_leftovers(uri)
    assert state_of_all(client) == {"RUNNING"}
    process.kill()
    process.join()
    tracking.end_leftovers(uri)
    assert state_of_all(client) == {"KILLED"}


def test_what_was_ended_is_completed_when_the_study_goes_on(uri: str, study: Study) -> None:
    client = killed(uri, study).client
    tracking.end_leftovers(uri)
    attempt(study, CELL, 1)
    upload(uri, study)
    assert state_of_all(client) == {"FINISHED"}
    assert len(all_runs(client)) == 4


def test_a_study_that_somebody_works_on_goes_on(uri: str, study: Study) -> None:
    client = killed(uri, study).client
    works(study)
    tracking.end_leftovers(uri)
    assert state_of_all(client) == {"RUNNING"}


def test_a_study_that_is_being_sent_just_now_goes_on(uri: str, study: Study) -> None:
    client = killed(uri, study).client
    with tracking.writing(study):
        tracking.end_leftovers(uri)
    assert state_of_all(client) == {"RUNNING"}


@pytest.mark.parametrize("instead", [False, True])
def test_a_removed_folder_ends_runs_of_this_host_only(uri: str, study: Study, instead: bool) -> None:
    runs = killed(uri, study)
    shutil.rmtree(study.folder)
    if instead:
        works(Study.ask(study.folder, {"rounds": 1}, [CELL]))
    here = runs.client.get_run(runs.cells[CELL.id].parent).data.tags["host"]
    tags_of(runs, host="another")
    tracking.end_leftovers(uri)
    assert state_of_all(runs.client) == {"RUNNING"}
    tags_of(runs, host=here)
    tracking.end_leftovers(uri)
    assert state_of_all(runs.client) == {"KILLED"}


def test_a_folder_that_cannot_be_looked_into_is_not_taken_for_gone(uri: str, study: Study, tmp_path: Path) -> None:
    runs = killed(uri, study)
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path / "loop" / "study", tmp_path / "store"):  # as without permission; as if half restored
        tags_of(runs, study_folder=str(place))
        tracking.end_leftovers(uri)
        assert state_of_all(runs.client) == {"RUNNING"}


def test_a_trial_is_ended_too_whose_study_had_ended(uri: str, study: Study) -> None:
    runs = killed(uri, study)
    tracking.send_summary(runs, study, EMPTY, False)
    assert states(runs.client, "trial") == ["RUNNING"]
    tracking.end_leftovers(uri)
    assert state_of_all(runs.client) == {"KILLED"}


def test_a_study_that_ended_properly_meanwhile_is_left_alone(uri: str, study: Study, monkeypatch: Any) -> None:
    attempt(study, CELL, 1)
    runs = killed(uri, study)
    owners = Study.owners

    def meanwhile(study: Study) -> list[Owner]:
        tracking.send_missing(runs, study, study.records())
        tracking.send_summary(runs, study, EMPTY, False)
        return owners(study)

    monkeypatch.setattr(Study, "owners", meanwhile)
    tracking.end_leftovers(uri)
    assert state_of_all(runs.client) == {"FINISHED"}


def test_runs_of_others_are_not_touched(uri: str) -> None:
    client = store.connect(uri)
    client.create_run("0", tags={"study": "theirs", "level": "study"})
    client.create_run("0", tags={"study": "theirs"})
    client.create_run("0")
    tracking.end_leftovers(uri)
    assert state_of_all(client) == {"RUNNING"}


def test_nothing_to_do_is_one_search(uri: str, study: Study, monkeypatch: Any) -> None:
    upload(uri, study)
    searches, search = [], MlflowClient.search_runs

    def counted(*args: Any, **more: Any) -> Any:
        searches.append(args)
        return search(*args, **more)

    monkeypatch.setattr(MlflowClient, "search_runs", counted)
    tracking.end_leftovers(uri)
    assert len(searches) == 1


def test_leftovers_of_many_pages_all_end(uri: str, study: Study, tmp_path: Path, monkeypatch: Any) -> None:
    client = killed(uri, study).client
    killed(uri, Study.ask(tmp_path / "second", {"rounds": 1}, [CELL]))
    monkeypatch.setattr(store, "PAGE", 1)
    tracking.end_leftovers(uri)
    assert len(find(client, "attributes.status = 'KILLED'")) == 6
