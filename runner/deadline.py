"""A limit on how long something may take, also inside libraries that wait without one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AGAIN_S = 1.0


class _OverdueError(BaseException):
    """No Exception: a library must not take it for an error of its own, and try again."""


@contextmanager
def limited(seconds: float | None) -> Iterator[Callable[[], None]]:
    """Raise TimeoutError if the block takes longer; calling what this gives starts the time anew.

    None is no limit. Only a main thread can be interrupted: elsewhere there is none either. Not to be nested.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return

    def start() -> None:
        # Again every second: what is raised within a destructor gets lost.
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)

    before = signal.signal(signal.SIGALRM, _raise)
    try:
        try:
            start()
            yield start
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _OverdueError:
        raise TimeoutError(f"nothing came within {seconds:.0f} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # once more: the time may have been over while the block was left
        signal.signal(signal.SIGALRM, before)


def _raise(*_: object) -> None:
    raise _OverdueError
