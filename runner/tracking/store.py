"""Where MLflow keeps its data: opening the store, and experiments by name."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from mlflow.entities import Experiment, LifecycleStage, Run
from mlflow.exceptions import MlflowException
from mlflow.store.db.utils import _get_latest_schema_revision
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from runner.cell import Cell
from runner.deadline import limited
from runner.errors import ConfigError
from runner.tracking.names import folder, masked, title, unslashed
from runner.tracking.refused import WITHOUT, network_file_system, way_out

# Runs come with all their params and figures: a page of more would be large for a slow line.
PAGE = 200
CHECK_S = 15.0
LOCKED_S = 20.0  # as long as MLflow itself waits for a locked file
KINDS = "use sqlite:///PATH/mlflow.db or http://HOST:PORT"


def check(uri: str, cells: Iterable[Cell], experiment: str | None = None) -> None:
    """Open the store, creating an SQLite file that is not there, and look for what would stop an upload later.

    Raises ConfigError for a folder store, a store that is no MLflow's or one of another version, a server that does
    not answer as it should or refuses the credentials, and an experiment that is deleted.
    """
    try:
        with limited(CHECK_S if is_server(uri) else None):
            client = connect(uri)
            client.search_experiments(max_results=1)  # another server than MLflow's finds no experiment either
            for name in sorted({experiment_name(cell, experiment) for cell in cells}):
                _find_experiment(client, name)
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise _unusable(uri, way_out(error)) from error


def doubt(uri: str) -> str | None:
    """What speaks against a store that can be used: an SQLite file on a network file system."""
    path = _database(uri)
    kind = network_file_system(str(path.resolve())) if path else None
    if not kind:
        return None
    way = "name a file on a local disk, or a server (tracking=server), and send it there later (runner.upload)"
    return f"tracking.uri={uri}: lies on a network file system ({kind}), whose locks SQLite cannot rely on; {way}"


def connect(uri: str) -> MlflowClient:
    """A client of the store at `uri` and of nothing else, whatever the environment says. Raises ConfigError."""
    if "://" not in uri or uri.startswith("file:"):
        raise _unusable(uri, f"MLflow keeps nothing in plain folders; {KINDS}")
    path = _database(uri)
    if path and not path.exists():
        _create(uri, path)
    if path:
        _check_schema(uri, path)
    elif not is_server(uri):
        _check_database(uri)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def is_server(uri: str) -> bool:
    """Whether it is the address of a server, which may hang; a file is at worst slow, on a busy machine."""
    return uri.startswith(("http://", "https://"))


def _unusable(uri: str, allowed: str) -> ConfigError:
    return ConfigError("tracking.uri", masked(uri), allowed)


def experiment_name(cell: Cell, configured: str | None = None) -> str:
    """The configured name, else "MODEL on DATASET"; a user's own class stands under its own name.

    MLflow's pages show a slash as a folder: only a configured name has any.
    """
    model, dataset = (cell.config[group] for group in ("model", "dataset"))
    derived = " on ".join(str(group.get("_target_") or group["name"]) for group in (model, dataset))
    return title(configured or unslashed(derived))


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


def search(client: MlflowClient, experiments: list[str], wanted: str) -> Iterator[Run]:
    """All runs of these experiments that one search string finds, however many, a page of them at a time."""
    return _pages(lambda token: client.search_runs(experiments, wanted, max_results=PAGE, page_token=token))


def _pages(fetch: Callable[[str | None], Any]) -> Iterator[Any]:
    page = fetch(None)
    yield from page
    while page.token:
        page = fetch(page.token)
        yield from page


def _find_experiment(client: MlflowClient, name: str) -> Experiment | None:
    found = client.get_experiment_by_name(name)
    if found and found.lifecycle_stage == LifecycleStage.DELETED:
        restore = (
            f"MLFLOW_TRACKING_URI={masked(client.tracking_uri)} mlflow experiments restore -x {found.experiment_id}"
        )
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
        raise _unusable(uri, "names no file; use sqlite:///PATH/mlflow.db")
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
        raise _unusable(uri, f"cannot be created ({error}); name a file on a local disk") from error


def _check_schema(uri: str, path: Path) -> None:
    """Read the version without MLflow, which would change an older store on opening it.

    Not read-only: SQLite first has to undo what a process wrote that was killed halfway.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=LOCKED_S)) as database:
            (found,) = database.execute("select version_num from alembic_version").fetchone() or (None,)
    except sqlite3.Error as error:
        allowed = f"cannot be read as an MLflow database ({error}); name another file, also a new one"
        raise _unusable(uri, allowed) from error
    _check_version(uri, found)


def _check_database(uri: str) -> None:
    """The same for a database behind a server of its own; where nothing is yet, MLflow makes its tables."""
    try:
        engine = create_engine(uri)
        with closing(engine.connect()) as connection:
            tables = inspect(connection).get_table_names()
            found = connection.scalar(text("select version_num from alembic_version")) if tables else None
        engine.dispose()
    except ImportError as error:
        raise _unusable(uri, f"needs a driver ({error}); install it, or use a server (tracking=server)") from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise _unusable(uri, f"is the address of no store; {KINDS}") from error
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        raise _unusable(uri, f"cannot be used as an MLflow database ({masked(reason)}); {KINDS}, {WITHOUT}") from error
    if tables:
        _check_version(uri, found)


def _check_version(uri: str, found: str | None) -> None:
    if found != _get_latest_schema_revision():  # type: ignore[no-untyped-call]
        mend = f"back it up and run `mlflow db upgrade {masked(uri)}`, or name another store"
        raise _unusable(uri, f"was made by another version of MLflow; {mend}")
