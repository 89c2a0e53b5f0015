"""One trial at a time on a device, across processes and users; the lock of a dead holder is free."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import within

from runner import device_lock
from runner.device_lock import locked
from runner.errors import StudyError
from runner.machine import Device

CARD = Device("NVIDIA H200", "GPU-1/../2")
HOLDER = """
import sys, time
from pathlib import Path
from runner import device_lock
from runner.machine import Device
device_lock.FOLDER = Path(sys.argv[1])
with device_lock.locked(Device("NVIDIA H200", sys.argv[2]), print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(device_lock, "FOLDER", tmp_path / "locks")
    return tmp_path / "locks"


@pytest.fixture
def holder(folder: Path) -> Callable[[str], "subprocess.Popen[str]"]:
    """Start another process that holds a device."""

    def start(uuid: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", HOLDER, str(folder), uuid]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    return start


def test_a_free_device_is_held_without_a_word(folder: Path) -> None:
    said: list[str] = []
    with locked(CARD, said.append):
        pass
    with locked(CARD, said.append):
        pass
    assert said == []
    assert {path.parent for path in folder.rglob("*")} == {folder}


def test_who_waits_says_for_whom_and_gets_the_device_when_the_holder_dies(
    holder: Callable[[str], "subprocess.Popen[str]"],
) -> None:
    process, said = holder(CARD.uuid), []

    def say(line: str) -> None:
        said.append(line)
        process.kill()

    with locked(CARD, say):
        assert process.wait() == -9
    (line,) = said
    assert line.startswith(f"waiting for NVIDIA H200 ({CARD.uuid}), held by process {process.pid} of ")


@pytest.mark.parametrize("lose", [lambda path: path.write_text(""), lambda path: path.unlink()])
def test_a_holder_that_has_not_yet_written_its_name_is_another_process(
    holder: Callable[[str], "subprocess.Popen[str]"], folder: Path, lose: Callable[[Path], object]
) -> None:
    process, said = holder(CARD.uuid), []
    (named,) = folder.glob("*.holder")
    lose(named)

    def say(line: str) -> None:
        said.append(line)
        process.kill()

    with locked(CARD, say):
        pass
    assert said == ["waiting for NVIDIA H200 (GPU-1/../2), held by another process"]


def test_another_device_is_free(holder: Callable[[str], "subprocess.Popen[str]"]) -> None:
    process, said = holder(CARD.uuid), []
    with locked(Device("NVIDIA H200", "GPU-2"), said.append):
        pass
    assert said == []
    process.kill()
    process.wait()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_waits_for_the_same_lock_and_names_the_holder(folder: Path) -> None:
    folder.parent.chmod(0o755)
    for parent in folder.parents:
        if parent != Path("/tmp") and os.access(parent, os.W_OK) and parent.stat().st_uid == 0 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    with locked(CARD, print):
        pass
    child = os.fork()  # no new interpreter: the other user may not be allowed to read this one's files
    if child == 0:
        os.setuid(65534)
        status, said = 1, []
        try:
            with locked(CARD, said.append):
                (folder / "other").touch()
                status = 0 if not said and within(20, (folder.parent / "asked").exists) else 2
        finally:
            os._exit(status)
    assert within(20, (folder / "other").exists)
    said = []

    def say(line: str) -> None:
        said.append(line)
        (folder.parent / "asked").touch()

    with locked(CARD, say):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert said and f"held by process {child} of " in said[0]


def test_a_lock_that_cannot_be_made_is_an_error_with_the_way_out(folder: Path) -> None:
    folder.touch()
    with pytest.raises(StudyError, match="set exclusive=false"), locked(CARD, print):
        pass


def test_the_holders_name_is_not_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (tmp_path / "precious").write_text("mine")
    (folder / "GPU-1_.._2.holder").symlink_to(tmp_path / "precious")
    with locked(CARD, print):
        pass
    assert (tmp_path / "precious").read_text() == "mine"
