"""Several cards at once: an invocation of the same study for each, which takes whole rounds like any other.

So a round stays on one card, a card that is slow or fails holds up no other, and there is one way only in which
trials are shared out.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.child import IMPORT_PATHS
from runner.interrupt import Terminated

# What a study is ended with when its process is gone: nobody would be left to do it.
_CODE = (
    "import sys; sys.path[:] = {paths}; from runner.process_end import end_with; end_with({parent}); "
    "from runner.__main__ import main; main()"
)
PATIENCE_S = 8.0


@contextmanager
def working(invocations: dict[str, list[str]], logs: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """One invocation a card, by the card's name: its command line. Their output goes to `logs`, a file each.

    They are interrupted, and after PATIENCE_S killed, when this block is left before they have ended.
    """
    logs.mkdir(parents=True, exist_ok=True)
    processes = [_start(words, logs / f"{card.replace(':', '-')}.txt") for card, words in invocations.items()]
    number = signal.SIGINT
    try:
        yield processes
    except Terminated as error:
        number = signal.Signals(error.signal)
        raise
    finally:
        _end(processes, number)


def _start(words: list[str], log: Path) -> "subprocess.Popen[bytes]":
    code = _CODE.format(paths=IMPORT_PATHS, parent=os.getpid())
    with open(log, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a terminal's Ctrl-C comes here first
        )


def _end(processes: list["subprocess.Popen[bytes]"], number: signal.Signals) -> None:
    for process in processes:
        process.send_signal(number)  # does nothing to one that has ended
    deadline = time.monotonic() + PATIENCE_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
