"""Being seen at work: a process that takes trials has a file in the study, with a heartbeat as long as it lives."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from runner.owner import HEARTBEAT_S, Owner, started_at
from runner.study import Study

_PRESENT: dict[Path, tuple[Owner, threading.Event, threading.Thread]] = {}
_ENDS_WITH: set[Owner] = set()


def present(study: Study) -> Owner:
    """The process that asks as an owner in the study, the same one at every call until it leaves.

    From the first call on a thread refreshes its file.
    """
    if study.folder not in _PRESENT:
        owner, ended = Owner.here(study.folder), threading.Event()
        owner_file = study.owner_file(owner.name)
        owner_file.parent.mkdir(exist_ok=True)
        owner.write(owner_file)
        thread = threading.Thread(target=_beat, args=(owner, owner_file, ended), daemon=True)
        thread.start()
        _PRESENT[study.folder] = owner, ended, thread
    return _PRESENT[study.folder][0]


def leave(study: Study) -> None:
    """Say that the process that asks works on the study no more, if it did."""
    if study.folder in _PRESENT:
        owner, ended, thread = _PRESENT.pop(study.folder)
        ended.set()
        thread.join()  # or it could write the file anew
        study.owner_file(owner.name).unlink(missing_ok=True)


def end_with(invoker: Owner) -> None:
    """End this process when the study's own process ends, if it descends from that one: nothing may go on alone.

    A launcher's workers do, also while they wait for their next trial; a cluster's jobs do not.
    """
    ancestors = [ancestor.pid for ancestor in psutil.Process().parents()]
    if invoker not in _ENDS_WITH and invoker.is_here and invoker.pid in ancestors:
        _ENDS_WITH.add(invoker)
        threading.Thread(target=_watch, args=(invoker,), daemon=True).start()


def _watch(invoker: Owner) -> None:
    while started_at(invoker.pid) == invoker.started:
        time.sleep(HEARTBEAT_S)
    os._exit(1)  # the forkserver sees the end of its input, and ends the trial with all it started


def _beat(owner: Owner, file: Path, ended: threading.Event) -> None:
    while not ended.wait(HEARTBEAT_S):
        with suppress(OSError):  # a study folder may be out of reach for a while, or removed
            try:
                os.utime(file)
            except FileNotFoundError:
                owner.write(file)  # taken for dead while this machine slept
