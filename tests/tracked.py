"""MLflow stores for tests, and studies shown in them."""

import tempfile
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from factory import make_record, make_series
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner import tracking
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.layout import record_file, series_file
from runner.record import Record
from runner.series import Series
from runner.study import Study
from runner.trial import Trial

# Each process is a new one, but MLflow, which takes seconds to load, is loaded once.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["runner.tracking", "runner.analysis.summary"])


def new_store(folder: Path) -> str:
    """The URI of a new store in a new folder."""
    folder.mkdir()
    (folder / "mlflow.db").write_bytes(_empty_store())
    return f"sqlite:///{folder}/mlflow.db"


@cache
def _empty_store() -> bytes:
    """Making a store takes a second, copying it none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        tracking.check(f"sqlite:///{path}", [])
        return path.read_bytes()


def put(study: Study, record: Record, series: Series | None) -> None:
    """Lay down one trial as a child leaves it."""
    folder = study.trial_folder(record.cell, record.number)
    folder.mkdir()
    record.write(record_file(folder))
    if series is not None:
        series.write(series_file(folder))


def one_trial(folder: Path, cell: Cell, record: Record, series: Series | None, rounds: int = 1) -> Study:
    """A study of one cell with one trial of those asked for."""
    study = Study.ask(folder, {"rounds": rounds}, [cell])
    put(study, record, series)
    return study


def attempt(study: Study, cell: Cell, number: int = 0, **changes: Any) -> Record:
    """Do a trial as a process does that claims it; one that is there already is done again."""
    if study.trial_folder(cell.id, number).exists():
        study.set_aside(cell.id, number)
    trial = Trial.of(cell, number, 0, "cuda:0")
    folder = study.claim(trial, "somebody")
    assert folder is not None
    record = make_record(cell, number, process={"claim": trial.claim}, **changes)
    make_series(number).write(series_file(folder))
    record.write(record_file(folder))
    return record


def upload(uri: str, study: Study, others: bool = False) -> tracking.StudyRuns:
    """Show a whole study in MLflow."""
    with tracking.writing(study):
        runs = tracking.open_study(uri, study)
        tracking.send_missing(runs, study, study.records())
        tracking.send_summary(runs, study, summarise(study), others)
        tracking.send_files(runs, study)
    return runs


def send_half(runs: tracking.StudyRuns, study: Study, record: Record) -> None:
    """Send a trial as a process does that is killed before it can end the run."""
    with suppress(ConnectionError), patch("runner.tracking.trial.set_state", side_effect=ConnectionError):
        tracking.send_trial(runs, study, record)


def all_runs(client: MlflowClient) -> list[Run]:
    """Every run of a store."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, max_results=1000))


def find(client: MlflowClient, wanted: str) -> list[Run]:
    """The runs that one search string finds in the whole store."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, wanted))


def state(client: MlflowClient) -> Any:
    """Everything that sending again could change."""
    runs = {run.info.run_id: run for run in all_runs(client)}
    history = {
        (name, key): [(point.step, point.value) for point in client.get_metric_history(name, key)]
        for name, run in runs.items()
        for key in run.data.metrics
    }
    facts = {name: (vars(run.info), run.data.params, run.data.tags) for name, run in runs.items()}
    return facts, history


def states(client: MlflowClient, level: str) -> list[str]:
    """The sorted states of the runs of a level."""
    return sorted(run.info.status for run in find(client, f"tags.level = '{level}'"))
