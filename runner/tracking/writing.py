"""One writer at a time: MLflow has no unique runs, so that two processes could create the same one twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import Timeout

from runner.errors import StudyError
from runner.owner import Owner
from runner.study import Study

WAIT_S = 60.0


@contextmanager
def writing(study: Study, wait_s: float = WAIT_S) -> Iterator[None]:
    """Be the only process that writes to MLflow for a study.

    Not to be nested. Raises TimeoutError, which says who writes, after waiting for `wait_s` seconds.
    """
    lock = study.lock("mlflow-")
    writer = Path(f"{lock.lock_file}.json")
    try:
        held = lock.acquire(timeout=wait_s)
    except Timeout:
        raise TimeoutError(f"{_named(writer)} writes to it for this study, waited {wait_s:.0f} s") from None
    with held:
        try:
            Owner.here().write(writer)
            yield
        finally:
            writer.unlink(missing_ok=True)


def _named(writer: Path) -> str:
    try:
        return str(Owner.read(writer))
    except StudyError:
        return "another process"
