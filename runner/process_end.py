"""How processes end: with their parent, and with all that they have started."""

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` (its pid) dies. Linux only; elsewhere it does nothing.

    A watching thread would not do: it never runs while native code holds the interpreter's lock.
    """
    _set_signal(signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request was made
        os._exit(1)


def outlive_parent() -> None:
    """Take it back: this process will see to its end itself."""
    _set_signal(0)


def _set_signal(number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)


def ended_words(status: int) -> str:
    """How a process ended, by its exit status (negative: the signal): "with exit status 3", "by SIGSEGV"."""
    if status >= 0:
        return f"with exit status {status}"
    hint = " (by hand, or by the system for want of memory)" if status == -signal.SIGKILL else ""
    known = -status in set(signal.Signals)  # real-time signals have no name
    return f"by {signal.Signals(-status).name if known else f'signal {-status}'}{hint}"


def end_group(child: int) -> None:
    """End a child and what it has started: left behind it would slow the next trial down and hold device memory.

    It leads a process group, but for the moment after the fork.
    """
    with contextlib.suppress(ProcessLookupError):
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(child, signal.SIGKILL)
