"""The states of the runs of studies and cells, through all that can happen to a study."""

import shutil
from pathlib import Path

import pytest
from factory import make_cell, make_record
from tracked import attempt, find, state, states, upload

from runner import tracking
from runner.record import Outcome
from runner.study import Study
from runner.tracking.states import state as state_of
from runner.upload import upload as upload_command

CELLS = [make_cell("default"), make_cell("benchmark")]
LATER = "2026-12-02T00:00:00+00:00"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": 1}, CELLS)


@pytest.mark.parametrize(
    ("outcomes", "working", "found"),
    [
        (["finished", "finished"], False, "FINISHED"),
        (["finished", "finished"], True, "FINISHED"),
        (["finished"], True, "RUNNING"),
        (["finished"], False, "KILLED"),
        ([], False, "KILLED"),
        (["failed", "interrupted"], False, "KILLED"),
        (["failed", "finished"], False, "FAILED"),
        (["failed", "finished"], True, "RUNNING"),
        (["diverged", "timed_out"], False, "FAILED"),
        (["finished", "finished", "failed"], False, "FINISHED"),  # one more than was asked for
    ],
)
def test_a_state_says_what_is_so(outcomes: list[Outcome], working: bool, found: str) -> None:
    cell = make_cell()
    records = [make_record(cell, number, outcome=outcome) for number, outcome in enumerate(outcomes)]
    assert state_of(records, [cell.id], 2, working) == found


def test_a_study_runs_until_the_last_process_ends(uri: str, study: Study) -> None:
    attempt(study, CELLS[0])
    client = upload(uri, study, others=True).client
    assert (states(client, "study"), states(client, "cell")) == (["RUNNING"], ["FINISHED", "RUNNING"])
    upload(uri, study)
    assert (states(client, "study"), states(client, "cell")) == (["KILLED"], ["FINISHED", "KILLED"])
    before = state(client)
    upload(uri, study)
    assert state(client) == before


def test_a_study_that_is_continued_runs_again_and_ends_anew(uri: str, study: Study) -> None:
    attempt(study, CELLS[0])
    client = upload(uri, study).client
    assert states(client, "study") == ["KILLED"]
    (ended,) = [run.info.end_time for run in find(client, "tags.level = 'study'")]
    tracking.open_study(uri, study)
    assert (states(client, "study"), states(client, "cell")) == (["RUNNING"], ["FINISHED", "RUNNING"])
    attempt(study, CELLS[1], ended=LATER)
    upload(uri, study)
    assert (states(client, "study"), states(client, "cell")) == (["FINISHED"], ["FINISHED", "FINISHED"])
    (run,) = find(client, "tags.level = 'study'")
    assert run.info.end_time > ended


def test_a_copy_that_lacks_trials_leaves_finished_runs_alone(uri: str, study: Study, tmp_path: Path) -> None:
    for cell in CELLS:
        attempt(study, cell)
    client = upload(uri, study).client
    before = state(client)
    copy = Study(shutil.copytree(study.folder, tmp_path / "copy"))
    shutil.rmtree(copy.trial_folder(CELLS[0].id, 0))
    assert upload_command(copy, uri) == 0
    moved = {"study_folder": str(copy.folder)}
    facts, history = state(client)
    assert history == before[1]
    for name, (info, params, tags) in before[0].items():
        assert facts[name] == (info, params, tags | (moved if tags["level"] == "study" else {}))
    attempt(study, CELLS[0])
    upload(uri, study)
    assert states(client, "cell") == ["FINISHED"] * 2


def test_a_copy_without_trials_that_nobody_has_finished_is_as_it_is(uri: str, study: Study) -> None:
    attempt(study, CELLS[0])
    attempt(study, CELLS[1], outcome="interrupted", reason="planted")
    client = upload(uri, study).client
    shutil.rmtree(study.trial_folder(CELLS[1].id, 0))
    upload(uri, study)
    assert (states(client, "study"), states(client, "cell")) == (["KILLED"], ["FINISHED", "KILLED"])


def test_a_study_that_is_made_longer_is_finished_no_more(uri: str, study: Study) -> None:
    for cell in CELLS:
        attempt(study, cell)
    client = upload(uri, study).client
    assert states(client, "study") == ["FINISHED"]
    Study.ask(study.folder, {"rounds": 2}, CELLS)
    upload(uri, study)
    assert states(client, "study") == ["KILLED"]
    for cell in CELLS:
        attempt(study, cell, 1, ended=LATER)
    upload(uri, study)
    assert states(client, "study") == ["FINISHED"]
