"""A trial in MLflow: settings, curves, figures and status, also of trials that are not as they should be."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import STEPS, Plant, make_cell, make_record, make_series, make_study
from tracked import all_runs, find, one_trial, put, upload

from runner import tracking
from runner.layout import series_file
from runner.tracking.store import connect
from runner.tracking.trial import figures


def test_a_trial_carries_settings_curves_and_figures(uri: str, tmp_path: Path) -> None:
    cell = make_cell("benchmark", dataset={"name": "digits", "size": None})
    record = make_record(cell, metrics={"accuracy": 0.875})
    assert record.speed is not None
    speed = replace(record.speed, new_shapes_ms=[30.0, 12.0], wait_ms=None)
    record = replace(record, speed=speed)
    series = replace(
        make_series(),
        evaluated=np.array([8, STEPS]),
        evaluations=np.array([[0.5], [0.875]]),
        evaluation_names=np.array(["accuracy"]),
    )
    client = upload(uri, one_trial(tmp_path / "study", cell, record, series)).client
    (run,) = find(client, "tags.level = 'trial'")
    assert run.data.params["cudnn.benchmark"] == run.data.params["effective.benchmark"] == "true"
    assert run.data.params["dataset.size"] == "null"
    assert run.data.metrics["step_ms"] == speed.step_ms
    assert run.data.metrics["first_step_ms"] == 500
    assert run.data.metrics["new_shapes_total_ms"] == 42
    assert run.data.metrics["peak_allocated_bytes"] == 2_300_000_000
    assert "wait_ms" not in run.data.metrics
    loss = client.get_metric_history(run.info.run_id, "train/loss")
    assert [point.step for point in loss] == list(range(1, STEPS + 1))
    accuracy = client.get_metric_history(run.info.run_id, "test/accuracy")
    assert [(point.step, point.value) for point in accuracy] == [(8, 0.5), (STEPS, 0.875)]


def test_the_state_of_the_machine_stands_where_system_metrics_do(uri: str, tmp_path: Path) -> None:
    cell = make_cell()
    before = {"sm_clock_mhz": 1980, "throttle_reasons": "", "power_w": 99.5, "load_1min": None}
    record = make_record(cell, covariates={"before": before, "after": before | {"power_w": 612.25}})
    client = upload(uri, one_trial(tmp_path / "study", cell, record, make_series())).client
    (run,) = find(client, "tags.level = 'trial'")
    assert run.data.tags["round"] == "0"
    assert {name for name in run.data.metrics if name.startswith("system/")} == {
        "system/sm_clock_mhz",
        "system/power_w",
    }
    points = client.get_metric_history(run.info.run_id, "system/power_w")
    seen = [(point.step, point.value, point.timestamp) for point in points]
    assert seen == [(0, 99.5, run.info.start_time), (STEPS, 612.25, run.info.end_time)]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("failed", "FAILED"), ("timed_out", "FAILED"), ("diverged", "FAILED"), ("interrupted", "KILLED")],
)
def test_only_complete_trials_are_finished(uri: str, tmp_path: Path, outcome: Any, status: str) -> None:
    cell = make_cell()
    study = one_trial(tmp_path / "it's one", cell, make_record(cell), make_series(), rounds=2)
    early: dict[str, Any] = {"flags": {}, "metrics": {}, "speed": None, "memory": {}, "digests": None}
    put(study, make_record(cell, 1, outcome=outcome, reason="x" * 9000, **early), None)
    runs = upload(uri, study)
    upload(uri, study)
    (run,) = find(runs.client, "tags.trial = '1'")
    assert (run.info.status, run.data.tags["outcome"]) == (status, outcome)
    assert run.data.tags["reason"].endswith(" ... (cut)")
    assert runs.client.get_run(runs.cells[cell.id].run).info.status == status
    assert len(all_runs(runs.client)) == 4


def test_figures_that_are_not_finite_are_left_out_and_named(uri: str, tmp_path: Path) -> None:
    cell = make_cell()
    series = make_series(loss=np.array([1.0] * 10 + [np.inf] * 3 + [np.nan] * 3, np.float32))
    record = make_record(cell, outcome="diverged", metrics={"accuracy": None, "loss": None})
    runs = upload(uri, one_trial(tmp_path / "study", cell, record, series))
    (run,) = find(runs.client, "tags.level = 'trial'")
    assert run.data.tags["non_finite"] == "test/accuracy, test/loss, train/loss"
    assert len(runs.client.get_metric_history(run.info.run_id, "train/loss")) == 10
    assert all(abs(value) < 1e300 for value in run.data.metrics.values())


def test_long_series_are_thinned_and_keep_their_ends(uri: str, tmp_path: Path) -> None:
    cell = make_cell()
    long = ("step_ms", "enqueue_ms", "wait_ms", "loss")
    series = make_series(shape=np.zeros(5000, int), data=np.zeros((5000, 2), int), **dict.fromkeys(long, np.ones(5000)))
    runs = upload(uri, one_trial(tmp_path / "study", cell, make_record(cell), series))
    (run,) = find(runs.client, "tags.level = 'trial'")
    steps = [point.step for point in runs.client.get_metric_history(run.info.run_id, "train/loss")]
    assert (len(steps), steps[0], steps[-1]) == (1000, 1, 5000)
    assert set(np.diff(steps)) == {5, 6}


def test_a_damaged_series_costs_a_trial_its_curves_and_no_other_anything(uri: str, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=2)
    damaged = study.records()[0]
    series_file(study.trial_folder(damaged.cell, damaged.number)).write_bytes(b"no archive")
    client = connect(uri)
    with tracking.writing(study):
        tracking.send_missing(tracking.open_study(uri, study), study, study.records())
    first, second = sorted(find(client, "tags.level = 'trial'"), key=lambda run: int(run.data.tags["trial"]))
    assert "train/loss" not in first.data.metrics and first.data.metrics["test/accuracy"] == 0.9
    assert "train/loss" in second.data.metrics


def test_a_trial_of_no_steps_has_no_figures() -> None:
    record = make_record(make_cell(), metrics={}, speed=None, memory={})
    nothing = np.zeros(0)
    series = make_series(loss=nothing, step_ms=nothing, evaluated=np.zeros(0, int), evaluations=np.zeros((0, 2)))
    assert figures(record, series) == ({}, [])


def test_settings_beyond_the_limits_all_arrive(uri: str, tmp_path: Path) -> None:
    args = {f"layer {i}": i for i in range(300)} | {"a(b),c@d": 1, "a(b),c@e": 2, "long": "x" * 7000, "": ""}
    cell = make_cell(model={"name": "custom", "args": args})
    record = make_record(cell, metrics={"a(b),c@d": 0.5})
    client = upload(uri, one_trial(tmp_path / "study", cell, record, make_series())).client
    (run,) = find(client, "tags.level = 'trial'")
    params = run.data.params
    assert sum(key.startswith("model.args") for key in params) == len(args)
    assert [value for key, value in params.items() if "a_b__c_d" in key] == ["1"]
    assert [value for key, value in params.items() if "a_b__c_e" in key] == ["2"]
    assert len(params["model.args.long"]) == 6000
    assert params["model.args.long"].endswith("(cut)")
    assert [value for key, value in run.data.metrics.items() if key.startswith("test/a_b__c_d-")] == [0.5]
    assert not any("${" in value for value in params.values())
    (above,) = find(client, "tags.level = 'cell'")
    full = Path(client.download_artifacts(above.info.run_id, "cell.json")).read_text()
    assert json.loads(full)["model"]["args"] == args
