"""Owners: the processes that work on a study, and whether they still live, on this machine or on another."""

import getpass
import os
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from runner.jsonfile import of_fields, read_fields, write_json

SCHEMA = 1
HEARTBEAT_S = 5.0
# Of a process elsewhere only the heartbeat is seen, through a file system that may hold times back for a minute.
HEARTBEAT_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Owner:
    """A process that takes trials: `machine` is the boot and the space of process numbers in which `pid` means it."""

    name: str
    host: str
    machine: str
    pid: int
    started: float
    user: str
    study: str

    @classmethod
    def here(cls, study: Path | None = None) -> "Owner":
        """The process that asks, under a new name, at work in this folder."""
        return cls(
            name=secrets.token_hex(8),
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            started=started_at(os.getpid()) or 0.0,
            user=_user(),
            study=place(study) if study else "",
        )

    def write(self, path: Path) -> None:
        """Write the owner's file; its time of change is the heartbeat by which other machines see it live."""
        write_json(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Owner":
        """Read what `write` wrote. Raises StudyError naming path, field and what it holds for a damaged file."""
        return read_fields(path, SCHEMA, lambda fields: of_fields(cls, fields), "remove it")

    @property
    def is_here(self) -> bool:
        """Whether its pid means the same process to the one that asks."""
        return self.machine == _machine()

    def alive(self, silent_s: Callable[[], float]) -> bool:
        """Whether it lives: looked up on its own machine, elsewhere by its heartbeat, within HEARTBEAT_TIMEOUT_S.

        `silent_s` tells the seconds since its last heartbeat.
        """
        if not self.is_here:
            return abs(silent_s()) < HEARTBEAT_TIMEOUT_S  # one from the future tells of a clock that was set back
        return started_at(self.pid) == self.started  # a process number is used again; the start tells them apart

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


def place(folder: Path) -> str:
    """Which folder of this machine it is, under whatever path: a copy is another one."""
    found = folder.stat()
    return f"{found.st_dev}/{found.st_ino}"


def started_at(pid: int) -> float | None:
    """When a process of this machine started, by a clock that nobody sets; None if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else float(fields[18])  # in ticks since the boot
    except OSError:
        if sys.platform == "linux" or not psutil.pid_exists(pid):
            return None
        return psutil.Process(pid).create_time()


def _machine() -> str:
    """The boot and the space of process numbers: containers of one machine share the first, not the second."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()}/{psutil.boot_time():.0f}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry, as in some containers
        return str(os.getuid())
