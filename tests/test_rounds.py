"""The order of the rounds, and the exit code of a study with failures."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import call, study
from hypothesis import given
from hypothesis import strategies as st
from processes import gone

from runner.rounds import in_order
from runner.study import Study

CUSTOM = ["model=custom", "dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image"]
TINY = [*CUSTOM, "dataset.classes=10", "train.steps=10", "train.batch_size=8"]


@given(name=st.text(min_size=1), number=st.integers(0, 10_000), count=st.integers(1, 12))
def test_a_round_visits_each_cell_once_and_repeats_for_the_same_study(name: str, number: int, count: int) -> None:
    cells: list[Any] = list(range(count))
    ordered = in_order(cells, name, number)
    assert sorted(ordered) == cells
    assert ordered == in_order(cells, name, number)
    assert sorted(map(str, in_order(cells, "lat\udcfc", 1))) == sorted(map(str, cells))  # a folder may be named so


def test_orders_differ_from_round_to_round_and_use_every_place() -> None:
    cells: list[Any] = list(range(4))
    orders = [tuple(in_order(cells, "a study", number)) for number in range(200)]
    assert len(set(orders)) == 24
    for cell in cells:
        places = [order.index(cell) for order in orders]
        assert all(places.count(place) > 25 for place in range(4))


def test_the_recorded_positions_are_those_of_the_studys_id(tmp_path: Path) -> None:
    words = ["cudnn=glob(*)", *TINY, "model._target_=planted.Plain", "trials=3"]
    done = study(*words, folder=tmp_path)
    cells = [cell.id for cell in done.cells()]
    found = {}
    for record in done.records():
        found.setdefault(record.number, {})[record.position] = record.cell
    for number, places in found.items():
        planned: list[Any] = in_order(cells, done.asked()["id"], number)  # type: ignore[arg-type]
        assert [places[position] for position in range(4)] == planned
    assert len({tuple(sorted(places.items())) for places in found.values()}) > 1


@pytest.mark.parametrize(
    ("how", "outcome", "code", "reason"),
    [
        ("raise", "failed", 1, "planted failure in step 3"),
        ("exit", "failed", 1, "exit status 7"),
        pytest.param("kill", "failed", 1, "SIGKILL", marks=pytest.mark.slow),  # quick in faults/test_trials.py
        ("server", "failed", 1, "the interpreter for the trials ended with status -9"),
        ("hang", "timed_out", 1, "timeout=15"),
        ("diverge", "diverged", 0, "loss is nan at step 3"),
    ],
)
def test_a_failing_cell_is_recorded_and_the_others_are_done(
    how: str, outcome: str, code: int, reason: str, tmp_path: Path
) -> None:
    words = [*TINY, "model._target_=planted.Fails", f"+model.args.how={how}", "+model.args.step=3,99"]
    limit = ["timeout=15"] if how == "hang" else []  # a machine at work may take as long for a trial that goes well
    done = call("runner", "-m", *words, *limit, "trials=2", "study=s", folder=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    found = Study.open(tmp_path / "s")
    steps = {cell.id: cell.config["model"]["args"]["step"] for cell in found.cells()}
    outcomes = {(steps[record.cell], record.number): record.outcome for record in found.records()}
    assert outcomes == {(3, 0): outcome, (3, 1): outcome, (99, 0): "finished", (99, 1): "finished"}
    assert all(reason in (record.reason or "") for record in found.records() if steps[record.cell] == 3)
    assert done.stdout.count(f"{outcome}: ") == 2
    cells = json.loads(found.summary_json.read_text())["cells"]
    counts = {steps[cell["cell"]]: (cell["n"], cell["failed"], cell["diverged"]) for cell in cells}
    assert counts == {3: (0, 0, 2) if outcome == "diverged" else (0, 2, 0), 99: (2, 0, 0)}


def test_a_store_that_breaks_costs_no_trial(tmp_path: Path) -> None:
    (tmp_path / "mlflow").mkdir()
    uri = f"sqlite:///{tmp_path}/mlflow/store.db"
    breaks = "planted.BreaksStore"
    words = [*TINY, f"model._target_={breaks}", f"+model.args.path={tmp_path}/mlflow/store.db", "trials=2"]
    done = call("runner", "-m", *words, f"tracking.uri={uri}", "study=s", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count(f"MLflow cannot be used: tracking.uri={uri}: ") == 1
    assert [record.outcome for record in Study.open(tmp_path / "s").records()] == ["finished"] * 2


def test_an_infinite_buffer_is_no_divergence(tmp_path: Path) -> None:
    done = study(*TINY, "model._target_=planted.Masked", "trials=1", folder=tmp_path)
    assert [record.outcome for record in done.records()] == ["finished"]


def test_a_mode_for_which_cudnn_finds_no_plan_fails_alone(tmp_path: Path) -> None:
    words = ["cudnn=default,benchmark", *TINY, "model._target_=planted.NoEngine", "trials=2", "tracking=off", "study=s"]
    done = call("runner", "-m", *words, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = Study.open(tmp_path / "s")
    flags = {cell.id: cell.config["cudnn"]["benchmark"] for cell in found.cells()}
    outcomes = sorted((flags[record.cell], record.outcome) for record in found.records())
    assert outcomes == [(False, "finished")] * 2 + [(True, "failed")] * 2


@pytest.mark.parametrize("isolation", ["forkserver", "spawn"])
def test_what_a_trial_started_does_not_outlive_it(isolation: str, tmp_path: Path) -> None:
    path = f"+model.args.path={tmp_path}/pid"
    study(*TINY, "model._target_=planted.LeavesProcess", path, "trials=1", f"isolation={isolation}", folder=tmp_path)
    assert gone([int((tmp_path / "pid").read_text())])


def test_a_trial_that_removes_its_folder_ends_nothing(tmp_path: Path) -> None:
    words = [*TINY, "model._target_=planted.RemovesFolder", f"+model.args.study={tmp_path}/s", "trials=2"]
    done = call("runner", "-m", *words, "tracking=off", "study=s", folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert [record.outcome for record in Study.open(tmp_path / "s").records()][-1] == "failed"


def test_flags_that_the_model_sets_itself_leave_no_recommendation(tmp_path: Path) -> None:
    words = ["cudnn=default,deterministic", *TINY, "model._target_=planted.FlipsFlag", "trials=1"]
    done = study(*words, folder=tmp_path)
    answers = json.loads(done.summary_json.read_text())["recommendation"]
    assert all("undecided" in answer for answer in answers.values())
