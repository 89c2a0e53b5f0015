"""A study in MLflow: what is there, under which names, and that sending again changes nothing."""

from pathlib import Path
from typing import Any

import pytest
from factory import GPU, STEPS, Plant, four_modes, make_cell, make_record, make_series, make_study
from tracked import all_runs, find, put, send_half, state, upload

from runner import tracking
from runner.analysis.summary import summarise
from runner.report.answer import answers
from runner.report.markdown import table
from runner.study import Study

ROUNDS = 2


@pytest.fixture
def four(tmp_path: Path) -> Study:
    return four_modes(tmp_path / "four", ROUNDS)


def test_a_study_is_one_run_above_a_run_a_cell_above_a_run_a_trial(uri: str, four: Study) -> None:
    runs = upload(uri, four)
    shown = all_runs(runs.client)
    assert len(shown) == 1 + 4 + 4 * ROUNDS
    assert {run.info.status for run in shown} == {"FINISHED"}
    (top,) = [run for run in shown if "mlflow.parentRunId" not in run.data.tags]
    assert top.info.run_name == f"4 modes, {ROUNDS} rounds: resnet on digits"
    for place in runs.cells.values():
        own = [run for run in shown if run.data.tags.get("mlflow.parentRunId") == place.run]
        assert len(own) == ROUNDS
        assert runs.client.get_run(place.run).data.tags["mlflow.parentRunId"] == top.info.run_id
    assert runs.client.get_experiment(top.info.experiment_id).name == "resnet on digits"


def test_one_search_string_finds_a_trial(uri: str, four: Study) -> None:
    client, name = upload(uri, four).client, four.asked()["id"]
    assert len(find(client, f"tags.study = '{name}' and tags.mode = 'benchmark' and tags.level = 'trial'")) == ROUNDS
    cell = four.cells()[2].id
    (run,) = find(client, f"tags.study = '{name}' and tags.cell = '{cell}' and tags.trial = '1'")
    assert run.info.run_name == "#1 deterministic (T,F)"
    assert run.data.tags["outcome"] == "finished"
    assert run.info.end_time - run.info.start_time == 60_000


def test_a_cell_answers_the_question_on_the_compare_page(uri: str, four: Study) -> None:
    runs = upload(uri, four)
    found = summarise(four)["cells"]
    assert len(found) == 4
    for cell in found:
        run = runs.client.get_run(runs.cells[cell["cell"]].run)
        shown, speed = run.data.metrics, cell["speed"]
        assert shown["_step_ms"] == shown["speed/step_ms_mean"] == speed["step_ms"]["mean"]
        assert shown["_step_ms_sd"] == speed["step_ms"]["sd"]
        assert shown["_ratio_to_default"] == speed["ratio_to_baseline"]["value"]
        low, high = speed["ratio_to_baseline"]["ci95"]
        assert (shown["_ratio_to_default_low_95"], shown["_ratio_to_default_high_95"]) == (low, high)
        assert shown["_peak_memory_bytes"] == speed["peak_memory_bytes"]
        assert shown["_distinct_weights"] == cell["reproducibility"]["unique_weights"]
        assert shown["_accuracy_mean"] == shown["test/accuracy_mean"] == cell["metrics"]["accuracy"]["mean"]
        assert shown["_accuracy_sd"] == cell["metrics"]["accuracy"]["sd"]
        assert shown["_trials_finished"] == ROUNDS
        details = [name for name in sorted(shown) if not name.startswith("_")]
        assert sorted(shown)[-len(details) :] == details and all("/" in name for name in details)
    tags = {run.info.run_name: run.data.tags for run in find(runs.client, "tags.level = 'cell'")}
    assert tags["deterministic (T,F)"]["verdict"] == f"bitwise, {ROUNDS} of {ROUNDS}"
    assert tags["benchmark (F,T)"]["verdict"] == f"weights differ, {ROUNDS} different of {ROUNDS}"
    assert tags["default (F,F)"]["speed_verdict"] == "baseline"


def test_the_study_carries_headline_and_files(uri: str, four: Study, tmp_path: Path) -> None:
    four.summary_json.write_text("{}")
    four.report_markdown.write_text("# report")
    four.plot("losses").parent.mkdir()
    four.plot("losses").write_text("<svg/>")
    client = upload(uri, four).client
    (run,) = find(client, "tags.level = 'study'")
    assert run.data.tags["recommended_reproducible"].startswith("undecided: ")
    assert answers(summarise(four))[0] in run.data.tags["mlflow.note.content"]
    assert table(summarise(four)) in run.data.tags["mlflow.note.content"]
    assert run.data.params["rounds"] == str(ROUNDS)
    assert [item.path for item in client.list_artifacts(run.info.run_id)] == ["plots", "report.md", "summary.json"]
    assert [item.path for item in client.list_artifacts(run.info.run_id, "plots")] == ["plots/losses.svg"]
    assert run.info.artifact_uri.startswith((tmp_path / "store" / "mlartifacts").as_uri())


def test_sending_again_changes_nothing(uri: str, four: Study) -> None:
    client = upload(uri, four).client
    before = state(client)
    upload(uri, four)
    assert state(client) == before


def test_more_rounds_are_added_to_the_same_runs(uri: str, four: Study) -> None:
    runs = upload(uri, four)
    for cell in four.cells():
        put(four, make_record(cell, ROUNDS), make_series(ROUNDS))
    assert upload(uri, four).cells == runs.cells
    assert len(all_runs(runs.client)) == 1 + 4 + 4 * (ROUNDS + 1)


def test_an_upload_that_broke_off_is_completed_without_doubled_points(uri: str, four: Study) -> None:
    runs, record = tracking.open_study(uri, four), four.records()[0]
    send_half(runs, four, record)
    tracking.send_trial(runs, four, record)
    (run,) = find(runs.client, "tags.level = 'trial'")
    assert run.info.status == "FINISHED"
    assert len(runs.client.get_metric_history(run.info.run_id, "train/step_ms")) == STEPS


def test_the_environment_of_the_shell_has_no_influence(uri: str, four: Study, monkeypatch: Any) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "elsewhere")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    client = upload(uri, four).client
    assert {experiment.name for experiment in client.search_experiments()} == {"Default", "resnet on digits"}
    assert len(find(client, f"tags.study = '{four.asked()['id']}'")) == 13
    assert client.search_runs(["0"]) == []


def test_two_models_stand_in_two_experiments_unless_one_is_named(uri: str, tmp_path: Path) -> None:
    cells = [make_cell(), make_cell(model={"name": "custom", "_target_": "mine.Net"})]
    study = make_study(tmp_path / "study", [(cell, Plant()) for cell in cells], rounds=1)
    client = upload(uri, study).client
    shown = {experiment.name for experiment in client.search_experiments()}
    assert shown == {"Default", "resnet on digits", "mine.Net on digits"}
    assert len(all_runs(client)) == 2 + 2 + 2
    runs = tracking.open_study(uri, study, "mine")
    assert len({place.parent for place in runs.cells.values()}) == 1


def test_each_experiment_is_told_its_own_answers(uri: str, tmp_path: Path) -> None:
    plants = [
        (make_cell(mode, model={"name": model}), Plant(ratio=fast if mode == "benchmark" else 1.0))
        for model, fast in (("resnet", 0.8), ("unet", 1.3))
        for mode in ("default", "benchmark")
    ]
    client = upload(uri, make_study(tmp_path / "study", plants, rounds=5)).client
    fastest = {run.data.tags["recommended_fastest"].split(" (least")[0] for run in find(client, "tags.level = 'study'")}
    assert fastest == {"benchmark (F,T), model=resnet", "default (F,F), model=unet"}
    for run in find(client, "tags.level = 'study'"):
        assert "settings" not in run.data.tags["mlflow.note.content"]
        assert ("resnet" in run.data.tags["mlflow.note.content"]) != ("unet" in run.data.tags["mlflow.note.content"])


def test_answers_for_several_settings_are_told_apart(uri: str, tmp_path: Path) -> None:
    plants = [
        (make_cell(mode, precision=precision), Plant(ratio=0.8 if mode == "benchmark" else 1.0))
        for precision in ("fp32", "bf16")
        for mode in ("default", "benchmark")
    ]
    client = upload(uri, make_study(tmp_path / "study", plants, rounds=5)).client
    (run,) = find(client, "tags.level = 'study'")
    assert run.data.tags["recommended_fastest"].startswith("precision=fp32: benchmark (F,T) (least")
    assert "; precision=bf16: benchmark (F,T) (least" in run.data.tags["recommended_fastest"]


def test_a_setting_cannot_write_the_page(uri: str, tmp_path: Path) -> None:
    cells = [make_cell(note="<script>|*x*"), make_cell(note="plain")]
    client = upload(uri, make_study(tmp_path / "study", [(cell, Plant()) for cell in cells], rounds=1)).client
    (run,) = find(client, "tags.level = 'study'")
    assert "| default (F,F), note=&lt;script&gt;\\|\\*x\\* |" in run.data.tags["mlflow.note.content"]
    assert "<script>" not in run.data.tags["mlflow.note.content"]


def test_loss_only_is_told_in_the_words_of_the_report(uri: str, tmp_path: Path) -> None:
    client = upload(uri, make_study(tmp_path / "study", [(make_cell(), Plant(loss_step=4))], ROUNDS)).client
    (run,) = find(client, "tags.level = 'cell'")
    told = "weights bitwise equal, the logged training loss differs (weights equal in 2 of 2)"
    assert run.data.tags["verdict"] == told


def test_figures_of_two_environments_stand_apart(uri: str, tmp_path: Path) -> None:
    other = GPU | {"gpu_name": "another"}
    plants = [(make_cell(), Plant())]
    study = make_study(tmp_path / "study", plants, 3, lambda cell, number: other if number == 2 else GPU)
    runs = upload(uri, study)
    first, second = summarise(study)["cells"]
    shown = runs.client.get_run(runs.cells[first["cell"]].run).data.metrics
    assert shown["_trials_finished"] == 2
    assert shown[f"environment-{second['environment']}/_trials_finished"] == 1
