"""One writer at a time: MLflow has no unique runs, so that two processes could create the same one twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout

from runner.device_lock import lock_file
from runner.errors import StudyError
from runner.owner import Owner
from runner.study import Study

WAIT_S = 60.0


@contextmanager
def writing(study: Study, wait_s: float = WAIT_S) -> Iterator[None]:
    """Be the only process that writes to MLflow for a study, or on this machine for a copy of it.

    Not to be nested. Raises TimeoutError, which says who writes, after waiting for `wait_s` seconds.
    """
    lock = study.lock("mlflow-")
    writer = Path(f"{lock.lock_file}.json")
    try:
        held = lock.acquire(timeout=wait_s)
    except Timeout:
        raise TimeoutError(f"{_named(writer)} writes to it for this study, waited {wait_s:.0f} s") from None
    with held, _alone_here(study, wait_s):
        try:
            Owner.here().write(writer)
            yield
        finally:
            writer.unlink(missing_ok=True)


@contextmanager
def _alone_here(study: Study, wait_s: float) -> Iterator[None]:
    """Keep copies of the study apart: each has a lock of its own, and all have the same runs."""
    name = sha256(str(study.asked().get("id")).encode(errors="backslashreplace")).hexdigest()[:32]
    lock: FileLock | None = None
    try:
        lock = FileLock(lock_file(f"mlflow-{name}"), mode=0o666)
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise TimeoutError(f"another process writes to it for a copy of this study, waited {wait_s:.0f} s") from None
    except OSError:  # no such lock can be made here: only copies that are sent at the same moment would need it
        lock = None
    try:
        yield
    finally:
        if lock:
            lock.release()


def _named(writer: Path) -> str:
    try:
        return str(Owner.read(writer))
    except StudyError:
        return "another process"
