"""An SQLite file that another process keeps locked while a study works: said once, no trial lost, sent later."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import call, finals
from factory import four_modes
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url
from tiny import PLAIN
from tracked import find, new_store

from runner.analysis.summary import summarise
from runner.mirror import Mirror
from runner.study import Study
from runner.tracking.store import LOCKED_S, connect
from runner.upload import upload

HOLD = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("begin immediate")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
database.execute("rollback")
"""
HELD_S = 60.0


@contextmanager
def held(uri: str, seconds: float) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the write lock, at most for so long."""
    command = [sys.executable, "-c", HOLD, str(make_url(uri).database), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def waits() -> Iterator[list[str]]:
    """What failed in the database; a lock is waited for in milliseconds: MLflow says 20 s in every session."""
    failed: list[str] = []

    def shortened(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        return statement.replace("busy_timeout = 20000", "busy_timeout = 20"), parameters

    def noted(context: Any) -> None:
        failed.append(str(context.original_exception))

    event.listen(Engine, "before_cursor_execute", shortened, retval=True)
    event.listen(Engine, "handle_error", noted)
    yield failed
    event.remove(Engine, "before_cursor_execute", shortened)
    event.remove(Engine, "handle_error", noted)


@pytest.mark.parametrize("shown", [0, 3])
def test_a_locked_file_is_waited_for_twice_and_said_once(
    uri: str, tmp_path: Path, shown: int, waits: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    study = four_modes(tmp_path / "study", 2)
    mirror, records = Mirror(uri, study, None), study.records()
    mirror.check()
    for record in records[:shown]:
        mirror.show([record])
    with held(uri, 600):
        for record in records[shown:]:
            mirror.show([record])
        mirror.finish(summarise(study), lambda: False)
    assert mirror.failed
    assert waits == ["database is locked"] * 2
    assert len(waits) * LOCKED_S < 60
    said = capfd.readouterr().err
    assert said.startswith(f"MLflow at {uri} does not take the study (another process keeps the database locked); ")
    assert said.count("\n") == 1 and said.endswith(f"runner.upload {study.folder} tracking.uri={uri}\n")
    assert upload(study, uri) == 0
    complete(uri, 8)


def complete(uri: str, trials: int) -> None:
    """All of a study of four cells is in the store, and nothing twice."""
    runs = find(connect(uri), "tags.study != ''")
    levels = [run.data.tags["level"] for run in runs]
    assert (levels.count("study"), levels.count("cell"), levels.count("trial")) == (1, 4, trials)
    assert {run.info.status for run in runs} == {"FINISHED"}


def trained(folder: Path, tracking: str) -> tuple[Study, str, float]:
    """A study at the command line: the study, what it said on standard error, the seconds."""
    began = time.monotonic()
    done = call("runner", "-m", *PLAIN, "cudnn=glob(*)", "trials=1", "study=s", tracking, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return Study.open(folder / "s"), done.stderr, time.monotonic() - began


@pytest.mark.slow
def test_a_file_locked_for_a_minute_costs_a_study_at_most_a_minute(uri: str, tmp_path: Path) -> None:
    (tmp_path / "quiet").mkdir()
    quiet, _, usual_s = trained(tmp_path / "quiet", f"tracking.uri={new_store(tmp_path / 'free')}")
    with held(uri, HELD_S) as holder:
        study, said, took_s = trained(tmp_path, f"tracking.uri={uri}")
        print(f"{took_s:.1f} s, without {usual_s:.1f} s")
        holder.wait(600)
    assert took_s - usual_s <= 60
    assert said.count("MLflow at ") == 1 and "Traceback" not in said
    assert finals(study.records()) == finals(quiet.records())
    assert upload(study, uri) == 0
    complete(uri, 4)
