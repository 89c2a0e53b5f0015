"""End with the parent: a killed study must leave neither a process nor GPU memory behind."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` (its pid) dies. Linux only; elsewhere it does nothing.

    A watching thread would not do: it never runs while native code holds the interpreter's lock.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request was made
        os._exit(1)
