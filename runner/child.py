"""Start the interpreters in which trials run: a forkserver that is used again, or a new one for each call."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from runner.errors import StudyError

# What a relative entry of sys.path meant when this process began: a job may have changed the folder since.
_PATHS = [str(Path(entry or ".").resolve()) for entry in sys.path]
# The working folder comes after our import: users name modules of theirs there, none of which may stand in for ours.
_CODE = (
    "import sys; sys.path[:] = {paths}; from runner.worker import server; sys.path.append({folder!r}); server.{call}"
)


@dataclass(frozen=True)
class Ended:
    """How a child ended: its pid and exit status (negative: the signal), or that its time was over."""

    pid: int
    status: int
    timed_out: bool


class ForkServer:
    """The parent's side of runner.worker.server: one interpreter with torch loaded, a child at a time."""

    def __init__(self, environ: dict[str, str], modules: list[str], folder: str):
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = _start(f"serve({os.getpid()}, {modules})", environ, folder, **streams)

    def call(self, request: dict[str, str], timeout: float | None) -> Ended:
        """Have a child do one call and wait for its end. Raises StudyError if the server itself ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._dead() from None
        child, timed_out = None, False
        try:
            child = self._reply()["pid"]
            if not self._ready(timeout):
                timed_out = True
                _kill(child)
        except KeyboardInterrupt:  # the child must not outlive the wish for it
            self._end(child)
            raise
        return Ended(child, self._reply()["status"], timed_out)

    def _end(self, child: int | None) -> None:
        """End the server's child, or the server too while it is not known whether there is one."""
        if child is None:
            self._process.kill()
        else:
            _kill(child)
            self._reply()

    def _ready(self, timeout: float | None) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], timeout)[0])

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._dead()
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _dead(self) -> StudyError:
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace").strip()
        return StudyError(f"the interpreter for the trials ended with status {self._process.wait()}: {last}")


@cache
def fork_server(environ: tuple[tuple[str, str], ...], modules: tuple[str, ...], folder: str) -> ForkServer:
    """The forkserver with these environment variables, loaded modules and working folder; started on first use."""
    return ForkServer(dict(environ), list(modules), folder)


def call_in_new_interpreter(
    environ: dict[str, str], request: dict[str, str], folder: str, timeout: float | None
) -> Ended:
    """Have a new interpreter do one call and wait for its end: nothing is shared with any other child."""
    process = _start(f"run_child({request}, {os.getpid()})", environ, folder, stdin=subprocess.DEVNULL)
    timed_out = False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        _kill(process.pid)
    except KeyboardInterrupt:  # the child must not outlive the wish for it
        _kill(process.pid)
        process.wait()
        raise
    status = process.wait()
    with contextlib.suppress(ProcessLookupError):  # what it left behind would slow the next trial down
        os.killpg(process.pid, signal.SIGKILL)
    return Ended(process.pid, status, timed_out)


def _start(call: str, environ: dict[str, str], folder: str, **streams: Any) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _CODE.format(paths=_PATHS, folder=folder, call=call)]
    # A session of its own: Ctrl-C in the terminal is for the study's process, which ends the children itself.
    return subprocess.Popen(command, env=environ, cwd=folder, bufsize=0, start_new_session=True, **streams)


def _kill(child: int) -> None:
    """End a child and what it started: it leads a process group."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            os.killpg(child, signal.SIGKILL)
            break
        except ProcessLookupError:  # not yet a group leader, or gone
            time.sleep(0.01)
