"""What a study must know of the machine before its first trial, found without loading torch into this process."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runner.child import ForkServer
from runner.errors import StudyError


@dataclass(frozen=True)
class Device:
    """A CUDA device by torch's own count: CUDA_VISIBLE_DEVICES may have hidden others."""

    name: str
    uuid: str


def cuda_devices(server: ForkServer) -> tuple[Device, ...]:
    """The devices that torch sees here, from a child of a forkserver: it alone may start CUDA.

    Raises StudyError if torch cannot be used here.
    """
    with tempfile.TemporaryDirectory() as temporary:
        answer, log = Path(temporary, "answer.json"), Path(temporary, "log.txt")
        request = {"call": "runner.worker.environment:describe_devices", "argument": str(answer), "log": str(log)}
        server.call(request, timeout=None)
        if not answer.is_file():
            raise StudyError(f"torch cannot be used here: {log.read_text(errors='replace').strip()[-2000:]}")
        return tuple(Device(**device) for device in json.loads(answer.read_text()))


def physical_cores() -> int:
    """The physical cores among the processors that this process may use: more threads only get in each other's way."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    siblings = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores = set()
    for number in usable:
        try:
            cores.add(Path(siblings.format(number)).read_text().strip())
        except OSError:
            cores.add(str(number))
    return len(cores)
