"""SIGTERM and a closed terminal interrupt in good order; what a process started is ended with it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from processes import gone

from runner.interrupt import Terminated, ended_by, reason_of, terminable


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_raised_within_and_the_handlers_are_as_before_afterwards(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Terminated) as caught, terminable():
        signal.raise_signal(number)
    assert caught.value.signal == number
    assert reason_of(caught.value) == f"ended by {number.name}"
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminable():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_changes_no_handler() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with terminable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_reasons_name_what_happened() -> None:
    assert reason_of(KeyboardInterrupt()) == "interrupted from the keyboard"
    assert reason_of(TimeoutError("too late")) == "broken off by its launcher: TimeoutError: too late"


def test_under_slurm_the_end_of_the_jobs_time_is_told_from_a_cancelled_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 3600))
    assert ended_by(signal.SIGTERM) == "ended by SIGTERM: SLURM job 7 was cancelled"
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time())))
    assert ended_by(signal.SIGTERM) == "ended by SIGTERM: SLURM job 7 came to the end of its time"
    monkeypatch.delenv("SLURM_JOB_END_TIME")
    assert ended_by(signal.SIGTERM) == "ended by SIGTERM: SLURM job 7 was cancelled"


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


# In a process of its own: among the children of the one that runs the tests is what other tests have left to be used.
ENDING = f"""
import subprocess, sys
from runner.interrupt import end_descendants
started = [
    subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    for code in ({STUBBORN!r}, "print(); import time; time.sleep(600)")
]
grandchild = int(started[0].stdout.readline())
end_descendants(patience_s=0.5)
print(grandchild, *(one.pid for one in started))
"""


def test_every_descendant_is_ended_also_one_that_does_not_listen() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=True, timeout=600)
    ended = [int(pid) for pid in done.stdout.split()]
    assert len(ended) == 3
    assert gone(ended)
