"""A real MLflow server of a test alone."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from processes import within

# Two of its services that nobody needs here.
QUIET = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def mlflow_server(store: str, folder: Path) -> Iterator[str]:
    """The address of a server that keeps runs in a store and files, which go through it, in a folder."""
    port = free_port()
    words = ["--backend-store-uri", store, "--artifacts-destination", str(folder / "files"), "--workers", "1"]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), *words]
    environ = {**os.environ, **QUIET}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    try:
        assert within(600, lambda: server.poll() is not None or _answers(port), every_s=0.2)
        assert server.poll() is None, (folder / "server.log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)  # its workers too
        server.wait(60)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
