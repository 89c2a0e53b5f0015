"""Being seen at work: a process that takes trials has a file in the study, with a heartbeat as long as it lives."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from runner.owner import HEARTBEAT_S, Owner, started_at
from runner.study import Study

_PRESENT: dict[Path, tuple[Owner, threading.Event, threading.Thread]] = {}


def present(study: Study, until: Owner | None = None) -> Owner:
    """The process that asks as an owner in the study, the same one at every call.

    From the first call on a thread refreshes its file. If `until` is a process that this one descends from (a
    launcher's workers descend from the study's process), it ends with that one: nothing may go on alone.
    """
    if study.folder not in _PRESENT:
        owner, ended = Owner.here(), threading.Event()
        owner_file = study.owner_file(owner.name)
        owner_file.parent.mkdir(exist_ok=True)
        owner.write(owner_file)
        watched = until if until and _descends_from(until) else None
        thread = threading.Thread(target=_beat, args=(owner, owner_file, ended, watched), daemon=True)
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


def _descends_from(owner: Owner) -> bool:
    return owner.is_here and owner.pid in (ancestor.pid for ancestor in psutil.Process().parents())


def _beat(owner: Owner, file: Path, ended: threading.Event, watched: Owner | None) -> None:
    while not ended.wait(HEARTBEAT_S):
        if watched and started_at(watched.pid) != watched.started:
            os._exit(1)  # the forkserver sees the end of its input, and ends the trial with all it started
        with suppress(OSError):  # a study folder may be out of reach for a while, or removed
            try:
                os.utime(file)
            except FileNotFoundError:
                owner.write(file)  # taken for dead while this machine slept
