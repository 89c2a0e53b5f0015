"""Being asked to end: SIGTERM and a closed terminal interrupt a study in the same orderly way as Ctrl-C."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from runner.start import ordinary_ctrl_c


class Terminated(KeyboardInterrupt):
    """A signal, its only argument, told the process to end."""

    @property
    def signal(self) -> int:
        """The signal's number."""
        return int(self.args[0])


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise Terminated within; a signal that is ignored (nohup) stays so.

    Only a main thread can do so; elsewhere nothing changes. From now on Ctrl-C interrupts imports too.
    """
    if threading.current_thread() is threading.main_thread():
        ordinary_ctrl_c()
    with signals_raised():
        yield


@contextmanager
def signals_raised() -> Iterator[None]:
    """The same, and Ctrl-C as it is: a command that has nothing to close ends without a word while it imports."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        # submitit has a job pass over SIGTERM, in Python: that is no wish of the user's.
        if handler is not signal.SIG_IGN:
            signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _: Any) -> None:
    raise Terminated(number)


def reason_of(error: BaseException) -> str:
    """Why a trial was broken off, in words."""
    if isinstance(error, Terminated):
        return ended_by(error.signal)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted from the keyboard"
    # What submitit raises in a job whose time is over.
    return f"broken off by its launcher: {type(error).__name__}: {error}"


def ended_by(number: int) -> str:
    """A signal from outside in words; under SLURM it comes from scancel or at the end of the job's time."""
    name = signal.Signals(number).name
    job, end = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_JOB_END_TIME", "")
    if job is None:
        return f"ended by {name}"
    # The warning that a script asks for comes some minutes early; the end itself at most seconds late.
    over = end.isdigit() and time.time() > int(end) - 300
    return f"ended by {name}: SLURM job {job} {'came to the end of its time' if over else 'was cancelled'}"


def end_descendants(patience_s: float = 5.0) -> None:
    """End every process that this one started, and those that they started: first asked, then killed."""
    processes = [one for one in psutil.Process().children(recursive=True) if not _is_tracker(one)]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, processes = psutil.wait_procs(processes, timeout=patience_s)


def _is_tracker(process: psutil.Process) -> bool:
    """Whether it is Python's or joblib's tracker: it takes no signal, cleans up after this process and then ends."""
    try:
        return any(".resource_tracker import main" in word for word in process.cmdline())
    except psutil.Error:
        return False
