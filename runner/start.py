"""The first moments of a command: Ctrl-C while modules are still being imported ends it without a word."""

import os
import signal
import sys
from types import FrameType, TracebackType

INTERRUPTED = 130


def quiet_ctrl_c() -> None:
    """Have Ctrl-C end this process with 130 and no traceback, whoever catches nothing. A Ctrl-C ignored stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_or_raise)
    sys.excepthook = _without_traceback


def ordinary_ctrl_c() -> None:
    """Have Ctrl-C raise KeyboardInterrupt wherever it comes: from now on there is something to close."""
    if signal.getsignal(signal.SIGINT) is _end_or_raise:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_or_raise(number: int, frame: FrameType | None) -> None:
    """Within an import end at once: what is raised there may be lost in a callback or taken for a missing module."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(INTERRUPTED)  # else Python kills itself by the signal, and prints where it was
    sys.__excepthook__(kind, error, trace)
