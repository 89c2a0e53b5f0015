"""How the commands beside the study's own end when something stops them: one line, and a code that says so."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from compared import called

from runner.command import command
from runner.errors import ConfigError, StudyError

MODULES = ["runner.report", "runner.compare", "runner.certify", "runner.check", "runner.upload", "runner.why"]
# The signal comes where the command reads its words.
STOPPED = """
import argparse, os, runpy, sys
argparse.ArgumentParser.parse_args = lambda *_: os.kill(os.getpid(), {number})
runpy.run_module({module!r}, run_name="__main__")
"""


def stopped(module: str, number: int) -> tuple[int, str, str]:
    code = STOPPED.format(module=module, number=int(number))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_sigterm_ends_a_command_with_a_line_and_143(module: str) -> None:
    said = "broken off (ended by SIGTERM); give the same command again\n"
    assert stopped(module, signal.SIGTERM) == (143, "", said)


@pytest.mark.parametrize(
    ("number", "code", "why"),
    [(signal.SIGINT, 130, "interrupted from the keyboard"), (signal.SIGHUP, 129, "ended by SIGHUP")],
)
def test_so_do_ctrl_c_and_a_closed_terminal(number: signal.Signals, code: int, why: str) -> None:
    said = f"broken off ({why}); give the same command again\n"
    assert stopped("runner.compare", number) == (code, "", said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StudyError("s: no study\nhere"), "s: no study here"),
        (ConfigError("key", 3, "give another"), "key=3: give another"),
        (
            PermissionError(errno.EACCES, os.strerror(errno.EACCES), "s/cells"),
            "s/cells: Permission denied; see to it that it can be read and written, or name another one",
        ),
    ],
)
def test_an_error_ends_a_command_with_one_line_and_2(error: Exception, said: str) -> None:
    @command
    def main() -> int:
        raise error

    assert called(main) == (2, [], f"{said}\n")


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_is_too_long_is_named_without_a_number(module: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", module, "x" * 300, *(["y"] if module == "runner.compare" else [])]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "File name too long; " in done.stderr and "Errno" not in done.stderr
