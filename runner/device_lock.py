"""One trial at a time on a device: the timed spans of two would measure each other."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from runner.errors import StudyError
from runner.machine import Device
from runner.owner import Owner

# On the node's own disk, whatever TMPDIR says: every user of the node must meet at the same place.
FOLDER = Path("/tmp/cudnn-mode-runner-locks")
POLL_S = 0.2


@contextmanager
def locked(device: Device, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the device, waiting for whoever has it; `say` is told what is waited for.

    The kernel gives the lock back when its holder dies. Raises StudyError if the lock cannot be made.
    """
    try:
        path = lock_file(device.uuid)
        lock = FileLock(path, mode=0o666)
        _wait(lock, f"waiting for {device.name} ({device.uuid}), held by", path.with_suffix(".holder"), say)
    except OSError as error:
        raise StudyError(f"{FOLDER}: no lock for {device.name} ({error}); set exclusive=false to do without") from error
    try:
        with suppress(OSError):  # only to tell the others; it may be another user's
            _write_open(path.with_suffix(".holder"), str(Owner.here()))
        yield
    finally:
        lock.release()


def lock_file(what: str) -> Path:
    """Where all processes of this node meet for a lock of this name; its folder is made. Raises OSError."""
    name = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in what)
    with suppress(FileExistsError):
        FOLDER.mkdir()
    found = os.lstat(FOLDER)  # never through a link, which anybody could have laid there
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
        FOLDER.chmod(0o1777)  # everybody makes files in it, nobody removes another's
    return FOLDER / f"{name}.lock"


def _wait(lock: FileLock, what: str, holder: Path, say: Callable[[str], None]) -> None:
    with suppress(Timeout):
        lock.acquire(blocking=False)
        return
    say(f"{what} {_read(holder)}")
    lock.acquire(poll_interval=POLL_S)


def _read(holder: Path) -> str:
    """Who has the lock; it writes its name a moment after it has got it, and the file is empty meanwhile."""
    with suppress(OSError):
        return holder.read_text(encoding="utf-8").strip() or "another process"
    return "another process"


def _write_open(path: Path, text: str) -> None:
    """Write a file that any user may rewrite; never through a link, which anybody could have laid there."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL)
        os.fchmod(handle, 0o666)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
