"""MLflow stores for tests, and studies shown in them."""

import tempfile
from functools import cache
from pathlib import Path

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner import tracking
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.record import Record
from runner.series import Series
from runner.study import Study, record_file, series_file


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


def one_trial(folder: Path, cell: Cell, record: Record, series: Series | None) -> Study:
    """A study of one cell with one trial."""
    study = Study.create(folder, {"rounds": 1}, [cell])
    put(study, record, series)
    return study


def upload(uri: str, study: Study) -> tracking.StudyRuns:
    """Show a whole study in MLflow."""
    runs = tracking.open_study(uri, study)
    for record in study.records():
        tracking.send_trial(runs, study, record)
    tracking.send_summary(runs, study, summarise(study))
    return runs


def all_runs(client: MlflowClient) -> list[Run]:
    """Every run of a store."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, max_results=1000))


def find(client: MlflowClient, wanted: str) -> list[Run]:
    """The runs that one search string finds in the whole store."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, wanted))
