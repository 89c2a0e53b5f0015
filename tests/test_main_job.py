"""The main job as a user types it: four modes, several rounds, one process a trial, MLflow, the table."""

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from conftest import call
from mlflow.tracking import MlflowClient

from runner.study import Study

ROUNDS = 2
PATTERN = "cudnn=glob(*)"


@pytest.fixture(scope="module")
def done(module_folder: Path) -> "CompletedProcess[str]":
    """The first command of the README with fewer rounds and steps, started in an empty folder."""
    return call("runner", "-m", PATTERN, f"trials={ROUNDS}", "train.steps=24", folder=module_folder)


@pytest.fixture(scope="module")
def study(done: "CompletedProcess[str]", module_folder: Path) -> Study:
    """The study that it left."""
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (module_folder / "studies").iterdir()
    return Study.open(folder)


def test_every_trial_has_a_process_of_its_own(study: Study) -> None:
    records = study.records()
    assert len(records) == 4 * ROUNDS
    assert len({record.process["pid"] for record in records}) == 4 * ROUNDS
    assert all(record.process["torch_preloaded"] for record in records)
    assert len({record.process["interpreter"] for record in records}) == 1
    assert {record.outcome for record in records} == {"finished"}


def test_each_round_visits_every_cell_once(study: Study) -> None:
    for number in range(ROUNDS):
        of_round = [record for record in study.records() if record.number == number]
        assert sorted(record.position for record in of_round) == [0, 1, 2, 3]
        assert len({record.cell for record in of_round}) == 4


def test_flags_are_read_back_as_asked(study: Study) -> None:
    cells = {cell.id: cell.config["cudnn"] for cell in study.cells()}
    for record in study.records():
        for moment in ("requested", "before", "after"):
            assert record.flags[moment].items() >= cells[record.cell].items()
    pairs = {(flags["deterministic"], flags["benchmark"]) for flags in cells.values()}
    assert pairs == {(False, False), (False, True), (True, False), (True, True)}


def test_a_cpu_gives_equal_bits_and_no_ranking(study: Study) -> None:
    summary = json.loads(study.summary_json.read_text())
    assert [cell["reproducibility"]["verdict"] for cell in summary["cells"]] == ["bitwise"] * 4
    assert {record.digests.final for record in study.records() if record.digests} == {
        study.records()[0].digests.final  # type: ignore[union-attr]
    }
    assert {cell["speed"]["ratio_to_baseline"]["verdict"] for cell in summary["cells"]} == {"inert"}
    assert "the flags cannot act here" in study.report_markdown.read_text()


def test_the_digits_are_learnt(study: Study) -> None:
    assert all(record.metrics["accuracy"] > 0.5 for record in study.records())  # type: ignore[operator]


def test_mlflow_has_the_tree_and_all_of_it_finished(study: Study, module_folder: Path) -> None:
    client = MlflowClient(f"sqlite:///{module_folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("resnet on digits")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    levels = [run.data.tags["level"] for run in runs]
    assert {level: levels.count(level) for level in levels} == {"study": 1, "cell": 4, "trial": 4 * ROUNDS}
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_the_terminal_shows_each_trial_and_the_table(done: "CompletedProcess[str]") -> None:
    lines = re.findall(r"^\[(\d+)/8\] round \d/2", done.stdout, re.MULTILINE)
    assert lines == [str(number) for number in range(1, 9)]
    for mode in ("default (F,F)", "benchmark (F,T)", "deterministic (T,F)", "deterministic_benchmark (T,T)"):
        assert done.stdout.count(mode) >= ROUNDS + 1
    assert "Traceback" not in done.stderr


def test_the_report_is_rebuilt_byte_for_byte(study: Study, module_folder: Path) -> None:
    paths = (study.summary_json, study.summary_csv, study.report_markdown)
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    again = call("runner.report", str(study.folder), folder=module_folder)
    assert again.returncode == 0, again.stderr
    assert [path.read_bytes() for path in paths] == before


def test_feeding_a_jobs_overrides_back_gives_its_cell(study: Study, module_folder: Path) -> None:
    overrides = next(study.folder.glob("hydra/*/0/config/overrides.yaml")).read_text()
    words = [line.removeprefix("- ").strip("'") for line in overrides.splitlines()]
    kept = [word for word in words if not word.startswith(("study", "trial.", "trials"))]
    again = call("runner", *kept, "trials=1", "tracking=off", "study=again", folder=module_folder)
    assert again.returncode == 0, again.stderr
    (cell,) = Study.open(module_folder / "again").cells()
    assert cell.id in {cell.id for cell in study.cells()}
