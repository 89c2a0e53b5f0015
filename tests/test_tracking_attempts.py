"""Trials that were done again, and trials that other processes did, in MLflow."""

from pathlib import Path
from typing import Any

import pytest
from factory import STEPS, make_cell
from mlflow.tracking import MlflowClient
from tracked import attempt, find, send_half, state, states, upload

from runner import tracking
from runner.study import Study
from runner.tracking import store
from runner.tracking.runs import StudyRuns

CELLS = [make_cell("default"), make_cell("benchmark")]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": 2}, CELLS)


def opened(uri: str, study: Study) -> StudyRuns:
    with tracking.writing(study):
        return tracking.open_study(uri, study)


def test_a_trial_that_was_done_again_is_found_once_and_its_first_attempt_keeps_its_figures(
    uri: str, study: Study
) -> None:
    first = attempt(study, CELLS[0], outcome="failed")
    client = upload(uri, study).client
    second = attempt(study, CELLS[0])
    upload(uri, study)
    (run,) = find(client, "tags.level = 'trial'")
    assert (run.data.tags["claim"], run.info.status) == (second.process["claim"], "FINISHED")
    (old,) = find(client, "tags.level = 'retried trial'")
    assert (old.data.tags["claim"], old.info.status) == (first.process["claim"], "FAILED")
    assert len(client.get_metric_history(old.info.run_id, "train/loss")) == STEPS
    before = state(client)
    upload(uri, study)
    assert state(client) == before


def test_an_attempt_from_before_attempts_had_names_gives_way_too(uri: str, study: Study) -> None:
    record = attempt(study, CELLS[0], outcome="failed")
    del record.process["claim"]
    runs = opened(uri, study)
    tracking.send_trial(runs, study, record)
    tracking.send_trial(runs, study, record)
    tracking.send_trial(runs, study, attempt(study, CELLS[0]))
    assert len(find(runs.client, "tags.level = 'trial'")) == len(find(runs.client, "tags.level = 'retried trial'")) == 1


def test_an_attempt_that_was_half_sent_ends_when_the_next_one_comes(uri: str, study: Study) -> None:
    runs = opened(uri, study)
    send_half(runs, study, attempt(study, CELLS[0]))
    assert states(runs.client, "trial") == ["RUNNING"]
    tracking.send_trial(runs, study, attempt(study, CELLS[0]))
    assert states(runs.client, "retried trial") == ["KILLED"]
    assert states(runs.client, "trial") == ["FINISHED"]


def test_who_has_not_heard_of_the_next_attempt_does_not_undo_it(uri: str, study: Study) -> None:
    runs = opened(uri, study)
    stale, current = attempt(study, CELLS[0], outcome="failed"), attempt(study, CELLS[0])
    for record in (stale, current, stale):
        tracking.send_trial(runs, study, record)
    (run,) = find(runs.client, "tags.level = 'trial'")
    assert run.data.tags["claim"] == current.process["claim"]


def test_an_attempt_that_was_put_back_counts_again(uri: str, study: Study) -> None:
    first = attempt(study, CELLS[0])
    upload(uri, study)
    attempt(study, CELLS[0])
    runs = upload(uri, study)
    folder = study.trial_folder(CELLS[0].id, 0)
    folder.rename(folder.with_name("trial-000.second"))
    folder.with_name(f"trial-000.{first.process['claim']}").rename(folder)
    upload(uri, study)
    (run,) = find(runs.client, "tags.level = 'trial'")
    assert run.data.tags["claim"] == first.process["claim"]
    assert len(find(runs.client, "tags.level LIKE '%trial'")) == 2


def test_all_that_is_missing_is_sent_after_one_search_of_many_pages(uri: str, study: Study, monkeypatch: Any) -> None:
    """As in a study of 1,200 trials, of which MLflow hands out 1,000 a page."""
    records = [attempt(study, cell, number) for cell in CELLS for number in range(4)]
    runs = opened(uri, study)
    for record in records[:5]:
        tracking.send_trial(runs, study, record)
    searches: list[str | None] = []
    search = MlflowClient.search_runs

    def counted(*args: Any, page_token: str | None = None, **more: Any) -> Any:
        searches.append(page_token)
        return search(*args, page_token=page_token, **more)

    monkeypatch.setattr(store, "PAGE", 2)
    monkeypatch.setattr(MlflowClient, "search_runs", counted)
    tracking.send_missing(runs, study, study.records())
    assert searches.count(None) == 1 and len(searches) == 3
    tracking.send_missing(runs, study, study.records())
    assert sorted(run.data.tags["trial"] for run in find(runs.client, "tags.level = 'trial'")) == list("00112233")


def test_a_study_of_more_cells_than_a_page_holds_has_one_run_a_cell(uri: str, study: Study, monkeypatch: Any) -> None:
    monkeypatch.setattr(store, "PAGE", 1)
    assert opened(uri, study).cells == opened(uri, study).cells
    assert len(find(store.connect(uri), "tags.level = 'cell'")) == len(CELLS)
