"""A PostgreSQL of a test alone, from Debian's package."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import within

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def postgres() -> Iterator[str]:
    """The URI of an empty database, reached through a socket file; skips where PostgreSQL is not installed."""
    pytest.importorskip("psycopg2")
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    # Not below pytest's folder, into which nobody else may look: PostgreSQL does not work as root.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _owner(folder)
    run = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([BINARIES[-1] / "initdb", "-A", "trust", "-U", "us", "--no-sync", "data"], check=True, **run)
    options = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=40"]
    server = subprocess.Popen([BINARIES[-1] / "postgres", "-D", "data", "-k", folder, "-h", "", *options], **run)
    try:
        ready = [BINARIES[-1] / "pg_isready", "-q", "-h", folder, "-U", "us"]
        assert within(600, lambda: subprocess.run(ready, check=False).returncode == 0)
        yield f"postgresql+psycopg2://us@/postgres?host={folder}"
    finally:
        server.send_signal(signal.SIGINT)  # its "fast" end: without waiting for those who are connected
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> str | None:
    if os.geteuid() != 0:
        return None
    user = "postgres"
    os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    return user
