"""How a process ended, in words."""

import signal

import pytest

from runner.process_end import ended_words


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "with exit status 3"),
        (-signal.SIGSEGV, "by SIGSEGV"),
        (-signal.SIGKILL, "by SIGKILL (by hand, or by the system for want of memory)"),
        (-40, "by signal 40"),
    ],
)
def test_every_status_has_words(status: int, said: str) -> None:
    assert ended_words(status) == said
