"""Looking at processes from outside."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process still works; a zombie only waits to be read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def within(seconds: float, condition: Callable[[], bool], every_s: float = 0.02) -> bool:
    """Whether the condition comes true in time; one that takes a while to look at is better asked less often."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def gone(pids: Iterable[int], seconds: float = 60) -> bool:
    """Whether all of these processes end in time."""
    listed = list(pids)
    return within(seconds, lambda: not any(alive(pid) for pid in listed))
