"""Studies with planted faults, started as users start them and watched from outside."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import LIMIT_S, TESTS
from processes import alive, within

from runner.record import Record
from runner.study import Study

CUSTOM = ["model=custom", "dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image"]
TINY = [*CUSTOM, "dataset.classes=10", "train.steps=10", "train.batch_size=8", "threads=1", "device=cpu"]
MARK = "RUNNER_FAULTS_MARK"


@dataclass
class Invocation:
    """A command at work: every process that descends from it carries its mark in the environment."""

    process: "subprocess.Popen[str]"
    folder: Path
    mark: str
    lines: list[tuple[float, str]] = field(default_factory=list)

    @property
    def study(self) -> Study:
        """The study in the folder `s`."""
        return Study.open(self.folder / "s")

    @property
    def out(self) -> str:
        """What it has said on standard output."""
        return "".join(line for _, line in self.lines)

    @property
    def err(self) -> str:
        """What it has said on standard error."""
        return (self.folder / f"{self.mark}.err").read_text()

    def tree(self) -> set[int]:
        """The living processes that descend from the command, and itself."""
        return {pid for pid in _marked(self.mark) if alive(pid)}

    def ended(self, seconds: float = LIMIT_S) -> int:
        """Wait for its end; returns the exit code."""
        code = self.process.wait(seconds)
        self.reader.join(5)  # a process that is left over may hold the pipe
        return code

    def left(self, seconds: float = 60) -> dict[int, str]:
        """What of its processes is there after so long, with command lines."""
        eventually(seconds, lambda: not self.tree())
        return {pid: _command(pid) for pid in self.tree()}

    def press_ctrl_c(self) -> None:
        """What a terminal does: the signal goes to the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.time(), line))


def eventually(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether the condition, which takes a while to look at, comes true in time."""
    return within(seconds, condition, every_s=0.2)


def _marked(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:300]
    except OSError:
        return ""


@contextmanager
def started(*words: str, folder: Path) -> Iterator[Invocation]:
    """Start a study in `folder`/s, as an interactive shell would; whatever is left at the end is killed."""
    mark = secrets.token_hex(6)
    paths = os.pathsep.join([str(TESTS), str(TESTS / "faults"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": paths, "HYDRA_FULL_ERROR": "0", MARK: mark}
    tracking = [] if any(word.startswith("tracking") for word in words) else ["tracking=off"]
    with open(folder / f"{mark}.err", "wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner", "-m", *TINY, *tracking, "study=s", *words],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            process_group=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a script's background
        )
    invocation = Invocation(process, folder, mark)
    try:
        yield invocation
    finally:
        for pid in invocation.tree():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


def done(*words: str, folder: Path) -> Invocation:
    """Do a study to its end; nothing may be left of it."""
    with started(*words, folder=folder) as invocation:
        invocation.ended()
        assert not invocation.left()
    return invocation


def by_argument(study: Study, name: str) -> dict[Any, list[Record]]:
    """The records by an argument of their model, in the order of the rounds."""
    values = {cell.id: cell.config["model"]["args"][name] for cell in study.cells()}
    found: dict[Any, list[Record]] = {value: [] for value in values.values()}
    for record in study.records():
        found[values[record.cell]].append(record)
    return found


def summary(study: Study) -> dict[str, Any]:
    """What summary.json holds."""
    return dict(json.loads(study.summary_json.read_text()))
