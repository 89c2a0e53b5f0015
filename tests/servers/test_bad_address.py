"""Stores that cannot be used: one line that names the address and says what to do."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from factory import make_cell
from proxy import black_hole, proxy
from serving import free_port
from tracked import new_store

from runner import tracking
from runner.errors import ConfigError
from runner.tracking import store
from runner.tracking.files import _check_place


def said(uri: str) -> str:
    """The one line."""
    with pytest.raises(ConfigError) as caught:
        tracking.check(uri, [make_cell()])
    message = str(caught.value)
    assert message.startswith(f"tracking.uri={tracking.masked(uri)}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("401", "refuses the credentials (401); set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "),
        ("403", "refuses the credentials (403); set MLFLOW_TRACKING_USERNAME"),
        ("500", "answers with an error (500); look into the server's log, or do without it (tracking=off)"),
        ("page", "is no MLflow server (answers with an error (404)); name the address that `mlflow server` prints"),
        ("stopped", "start the server, or correct the address (http://HOST:PORT), or do without it (tracking=off)"),
    ],
)
def test_what_a_server_answers_is_told_apart(fault: str, words: str) -> None:
    with proxy(fault=fault) as server:
        assert words in said(server.uri)


def test_a_port_where_nobody_listens() -> None:
    assert "nobody listens there; start the server, or correct the address" in said(f"http://127.0.0.1:{free_port()}")


def test_a_machine_that_nobody_knows() -> None:
    assert "no machine of this name is known; start the server" in said("http://nowhere.invalid:5000")


@pytest.mark.parametrize("kind", ["hangs", "drips"])
def test_a_server_that_does_not_answer_is_given_up_in_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose answer never ends: no limit of MLflow's is ever exceeded."""
    monkeypatch.setattr(store, "CHECK_S", 1.5)
    with proxy(fault=kind) as server:
        assert "does not answer; start the server" in said(server.uri)


def test_an_address_whose_packets_are_dropped_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with black_hole() as uri:
        assert "cannot be reached in time; start the server" in said(uri)


@pytest.mark.parametrize("uri", ["htp://127.0.0.1:5000", "http://", "postgresql+psycopg2://us:secret@127.0.0.1:1/x"])
def test_an_address_of_no_store(uri: str) -> None:
    message = said(uri)
    assert "secret" not in message
    assert "http://HOST:PORT" in message


def test_a_network_file_system_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = new_store(tmp_path / "store")
    assert tracking.doubt(uri) is None
    found = [SimpleNamespace(mountpoint=place, fstype=kind) for place, kind in (("/", "ext4"), (str(tmp_path), "nfs4"))]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: found)
    message = str(tracking.doubt(uri))
    assert message.startswith(f"tracking.uri={uri}: lies on a network file system (nfs4)")
    assert tracking.doubt("sqlite:////elsewhere/mlflow.db") is None
    assert tracking.doubt("http://127.0.0.1:5000") is None


def test_files_go_to_no_folder_of_a_server_on_another_machine(tmp_path: Path) -> None:
    elsewhere = "/srv/of/another/machine/1"
    with pytest.raises(OSError, match="does not take files itself, and its folder /srv/of/another/machine is not on"):
        _check_place("http://mlflow.example.org", elsewhere)
    for uri, location in [
        ("http://127.0.0.1:5000", elsewhere),
        ("http://mlflow.example.org", f"file://{tmp_path}/1"),
        ("http://mlflow.example.org", "mlflow-artifacts:/1"),
        ("http://mlflow.example.org", "s3://bucket/1"),
        ("sqlite:////x/mlflow.db", elsewhere),
    ]:
        _check_place(uri, location)


def test_no_password_is_shown() -> None:
    shown: Callable[[Any], str] = tracking.masked
    assert shown("http://me:secret@host:5000/x") == "http://me:***@host:5000/x"
    assert (
        shown("cannot reach postgresql://me:se:cret@host/x, sorry") == "cannot reach postgresql://me:***@host/x, sorry"
    )
    assert shown("http://host:5000/a@b") == "http://host:5000/a@b"
