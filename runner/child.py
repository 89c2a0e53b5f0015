"""Start the interpreters in which trials run: forkservers, each used again or for one call only."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from runner.errors import StudyError
from runner.process_end import end_group

# What a relative entry of sys.path meant when this process began: a job may have changed the folder since.
IMPORT_PATHS = [str(Path(entry or ".").resolve()) for entry in sys.path]
# The working folder comes after our import: users name modules of theirs there, none of which may stand in for ours.
_CODE = (
    "import sys; sys.path[:] = {paths}; from runner.worker import server; sys.path.append({folder!r}); "
    "server.serve({parent}, {modules})"
)

PATIENCE_S = 5.0


class ServerDied(StudyError):
    """The forkserver ended by itself; `status` is its exit status (negative: the signal)."""

    def __init__(self, message: str, status: int):
        super().__init__(message, status)

    @property
    def status(self) -> int:
        """The exit status."""
        return int(self.args[1])

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Ended:
    """How a child ended: its pid and exit status (negative: the signal), or that its time was over."""

    pid: int
    status: int
    timed_out: bool


class ForkServer:
    """The parent's side of runner.worker.server: one interpreter with modules loaded, a child at a time."""

    def __init__(self, environ: dict[str, str], modules: list[str], folder: str):
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._child: int | None = None
        code = _CODE.format(paths=IMPORT_PATHS, folder=folder, parent=os.getpid(), modules=modules)
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environ,
            cwd=folder,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in the terminal is for the study's process, which ends the children
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def call(self, request: dict[str, Any], timeout: float | None) -> Ended:
        """Have a child do one call and wait for its end. Raises ServerDied if the server itself ended."""
        assert self._process.stdin is not None
        timed_out = False
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            child = self._child = int(self._reply()["pid"])
            if not self._ready(timeout):
                timed_out = True
                end_group(child)
                if not self._ready(PATIENCE_S):  # it hangs in the system, in a driver for instance: do without
                    self.close()
                    return Ended(child, -signal.SIGKILL, timed_out)
            status = int(self._reply()["status"])
        except BrokenPipeError:
            raise self._dead() from None
        except ServerDied:
            raise
        except BaseException:  # the child must not outlive the wish for it, and a reply not read is no reply
            self.close()
            raise
        self._child = None
        return Ended(child, status, timed_out)

    @property
    def alive(self) -> bool:
        """Whether it can be called."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the server, its child and what that has started."""
        if self._child is not None:
            end_group(self._child)
        self._process.terminate()  # it knows better than this process what the child has started
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

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

    def _dead(self) -> ServerDied:
        status = self._process.wait()
        self.close()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace").strip()
        return ServerDied(f"the interpreter for the trials ended with status {status}: {last}", status)


_SERVERS: dict[tuple[Any, ...], ForkServer] = {}


def fork_server(environ: tuple[tuple[str, str], ...], modules: tuple[str, ...], folder: str) -> ForkServer:
    """The living forkserver with these environment variables, loaded modules and working folder."""
    key = environ, modules, folder
    if key not in _SERVERS or not _SERVERS[key].alive:
        _SERVERS[key] = ForkServer(dict(environ), list(modules), folder)
    return _SERVERS[key]


def call_in_new_interpreter(
    environ: dict[str, str], request: dict[str, Any], folder: str, timeout: float | None
) -> Ended:
    """Have a new interpreter do one call and wait for its end: nothing is shared with any other child.

    It is a forkserver with nothing loaded, for one child only: so it ends as reliably with everything it started.
    """
    server = ForkServer(environ, [], folder)
    try:
        return server.call(request, timeout)
    finally:
        server.close()
