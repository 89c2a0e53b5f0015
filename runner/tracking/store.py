"""Where MLflow keeps its data: opening the store, and experiments by name."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from mlflow.entities import Experiment, LifecycleStage, Run
from mlflow.exceptions import MlflowException
from mlflow.store.db.utils import _get_latest_schema_revision
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from runner.cell import Cell
from runner.errors import ConfigError
from runner.tracking.names import folder, title

PAGE = 1000


def check(uri: str, cells: Iterable[Cell], experiment: str | None = None) -> None:
    """Open the store, creating an SQLite file that is not there, and look for what would stop an upload later.

    Raises ConfigError for a folder store, a file that is no MLflow database or one of another version, and an
    experiment that is deleted.
    """
    client = connect(uri)
    for name in sorted({experiment_name(cell, experiment) for cell in cells}):
        _find_experiment(client, name)


def connect(uri: str) -> MlflowClient:
    """A client of the store at `uri` and of nothing else, whatever the environment says. Raises ConfigError."""
    if "://" not in uri or uri.startswith("file:"):
        raise ConfigError("tracking.uri", uri, "MLflow keeps nothing in plain folders; use sqlite:///PATH/mlflow.db")
    path = _database(uri)
    if path and not path.exists():
        _create(uri, path)
    if path:
        _check_schema(uri, path)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def experiment_name(cell: Cell, configured: str | None = None) -> str:
    """The configured name, else "MODEL on DATASET"; a user's own class stands under its own name."""
    model, dataset = (cell.config[group] for group in ("model", "dataset"))
    return title(configured or " on ".join(str(group.get("_target_") or group["name"]) for group in (model, dataset)))


def open_experiment(client: MlflowClient, name: str) -> str:
    """The id of the experiment, created if there is none. Raises ConfigError if it is deleted."""
    found = _find_experiment(client, name)
    if found:
        return str(found.experiment_id)
    try:
        return str(client.create_experiment(name, artifact_location=_artifacts(client.tracking_uri, name)))
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        return open_experiment(client, name)  # another process was faster


def every_experiment(client: MlflowClient) -> list[str]:
    """The ids of all experiments."""
    found = _pages(lambda token: client.search_experiments(max_results=PAGE, page_token=token))
    return [one.experiment_id for one in found]


def search(client: MlflowClient, experiments: list[str], wanted: str) -> list[Run]:
    """All runs of these experiments that one search string finds, however many."""
    return _pages(lambda token: client.search_runs(experiments, wanted, max_results=PAGE, page_token=token))


def _pages(fetch: Callable[[str | None], Any]) -> list[Any]:
    """What MLflow hands out a page at a time."""
    page = fetch(None)
    found = list(page)
    while page.token:
        page = fetch(page.token)
        found += page
    return found


def _find_experiment(client: MlflowClient, name: str) -> Experiment | None:
    found = client.get_experiment_by_name(name)
    if found and found.lifecycle_stage == LifecycleStage.DELETED:
        restore = f"MLFLOW_TRACKING_URI={client.tracking_uri} mlflow experiments restore -x {found.experiment_id}"
        raise ConfigError("tracking.experiment", name, f"is deleted; restore it ({restore}) or give another name")
    return found


def _database(uri: str) -> Path | None:
    """The file of an SQLite store, None for a store of another kind."""
    if not uri.startswith("sqlite"):
        return None
    try:
        database = make_url(uri).database
    except ArgumentError:
        database = None
    if not database or database == ":memory:":
        raise ConfigError("tracking.uri", uri, "names no file; use sqlite:///PATH/mlflow.db")
    return Path(database).absolute()


def _artifacts(uri: str, name: str) -> str | None:
    """Beside an SQLite file, whatever the current folder is; any other store knows its own place."""
    path = _database(uri)
    return (path.parent / "mlartifacts" / folder(name)).as_uri() if path else None


def _create(uri: str, path: Path) -> None:
    """Make the tables aside and link the file into place: of several processes one wins, none sees half a store."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
            aside = Path(folder) / "mlflow.db"
            artifacts = (path.parent / "mlartifacts").as_uri()
            SqlAlchemyStore(f"sqlite:///{aside}", artifacts).engine.dispose()  # type: ignore[no-untyped-call]
            with suppress(FileExistsError):
                path.hardlink_to(aside)
    except OSError as error:
        raise ConfigError("tracking.uri", uri, f"cannot be created ({error}); name a file on a local disk") from error


def _check_schema(uri: str, path: Path) -> None:
    """Read the version without MLflow, which would change an older store on opening it.

    Not read-only: SQLite first has to undo what a process wrote that was killed halfway.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as database:
            (found,) = database.execute("select version_num from alembic_version").fetchone() or (None,)
    except sqlite3.Error as error:
        allowed = f"cannot be read as an MLflow database ({error}); name another file, also a new one"
        raise ConfigError("tracking.uri", uri, allowed) from error
    if found != _get_latest_schema_revision():  # type: ignore[no-untyped-call]
        way_out = f"back it up and run `mlflow db upgrade {uri}`, or name another file"
        raise ConfigError("tracking.uri", uri, f"was made by another version of MLflow; {way_out}")
