"""Whether a process lives: known exactly on its own machine, by its beat elsewhere."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from processes import within

from runner.errors import StudyError
from runner.owner import HEARTBEAT_TIMEOUT_S, Owner, started_at


def never() -> float:
    raise AssertionError("on the same machine no beat is asked for")


def test_the_asking_process_lives_and_is_named() -> None:
    here = Owner.here()
    assert here.alive(never)
    assert str(here).startswith(f"process {os.getpid()} of ")
    assert here.name != Owner.here().name


def test_a_process_that_ended_is_dead_also_as_a_zombie() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = replace(Owner.here(), pid=child.pid, started=started_at(child.pid) or 0.0)
    assert owner.alive(never)
    child.kill()
    assert within(10, lambda: not owner.alive(never))
    child.wait()
    assert not owner.alive(never)


def test_another_process_of_the_same_number_is_not_the_owner() -> None:
    assert not replace(Owner.here(), started=Owner.here().started - 60).alive(never)


def test_elsewhere_the_heartbeat_tells() -> None:
    elsewhere = replace(Owner.here(), machine="another", pid=1)
    assert elsewhere.alive(lambda: 0)
    assert elsewhere.alive(lambda: HEARTBEAT_TIMEOUT_S - 1)
    assert not elsewhere.alive(lambda: HEARTBEAT_TIMEOUT_S)


def test_an_owner_is_read_as_it_was_written(tmp_path: Path) -> None:
    here = Owner.here()
    here.write(tmp_path / "owner.json")
    assert Owner.read(tmp_path / "owner.json") == here


def test_a_damaged_owner_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "owner.json").write_text('{"schema": 1, "pid": 7}')
    with pytest.raises(StudyError, match=str(tmp_path / "owner.json")):
        Owner.read(tmp_path / "owner.json")
