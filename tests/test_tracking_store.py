"""Opening a store: what is refused, with which words, and that nothing of a user's is touched."""

import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from factory import make_cell
from mlflow.environment_variables import MLFLOW_HTTP_REQUEST_MAX_RETRIES, MLFLOW_HTTP_REQUEST_TIMEOUT

from runner import tracking
from runner.errors import ConfigError
from runner.tracking.store import connect, open_experiment


@pytest.mark.parametrize("folder", ["file:///tmp/mlruns", "mlruns", "./mlruns", "/tmp/mlruns"])
def test_a_folder_is_refused_in_one_line(folder: str) -> None:
    with pytest.raises(ConfigError, match=r"sqlite:///") as caught:
        tracking.check(folder, [])
    assert "\n" not in str(caught.value)


def test_a_deleted_experiment_is_said_with_the_way_out(uri: str) -> None:
    client = connect(uri)
    client.delete_experiment(open_experiment(client, "resnet on digits"))
    with pytest.raises(ConfigError, match=r"experiments restore -x 1\) or give another name"):
        tracking.check(uri, [make_cell()])
    tracking.check(uri, [make_cell()], "another name")


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("not a database, but somebody's notes")
    with pytest.raises(ConfigError, match="cannot be read as an MLflow database"):
        tracking.check(f"sqlite:///{path}", [])
    assert path.read_text().endswith("notes")


def test_a_store_of_another_version_is_refused_and_left_alone(uri: str) -> None:
    path = uri.removeprefix("sqlite:///")
    with sqlite3.connect(path) as database:
        database.execute("update alembic_version set version_num = 'older'")
    before = Path(path).read_bytes()
    with pytest.raises(ConfigError, match="mlflow db upgrade"):
        tracking.check(uri, [])
    assert Path(path).read_bytes() == before


KILLED_HALFWAY = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("pragma cache_size = 1")  # so that the file is written to before the transaction ends
database.execute("begin immediate")
database.executemany("insert into experiments (name) values (?)", [(f"{i}" * 99,) for i in range(999)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_store_to_which_a_killed_process_was_writing_is_taken(uri: str) -> None:
    path = Path(uri.removeprefix("sqlite:///"))
    subprocess.run([sys.executable, "-c", KILLED_HALFWAY, path], check=False)
    assert path.with_name("mlflow.db-journal").stat().st_size > 0
    tracking.check(uri, [])
    assert [experiment.name for experiment in connect(uri).search_experiments()] == ["Default"]


@pytest.mark.parametrize("place", ["sqlite://", "sqlite:///:memory:", "sqlite:////proc/nowhere/mlflow.db"])
def test_a_place_where_nothing_can_be_kept_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match=r"names no file|cannot be created"):
        tracking.check(place, [])


def test_a_server_that_does_not_answer_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MLFLOW_HTTP_REQUEST_MAX_RETRIES.get() == 0  # a request whose answer is lost must not make a second run
    assert MLFLOW_HTTP_REQUEST_TIMEOUT.get() == 10
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(tracking.STORE_ERRORS):
        tracking.check(f"http://127.0.0.1:{silent.getsockname()[1]}", [make_cell()])


@pytest.mark.slow
def test_processes_that_make_the_same_store_do_not_harm_each_other(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/new folder/mlflow.db"
    code = f"from runner import tracking; tracking.check({uri!r}, [])"
    several = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in several] == [0, 0, 0]
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["mlflow.db"]
