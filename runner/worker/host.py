"""What is known of this machine without torch."""

import platform
import socket
import subprocess
from typing import Any


def host() -> dict[str, Any]:
    """Name, platform and processor of the machine, and the git revision of the working folder; None if unknown."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "git_revision": git_revision(),
    }


def driver() -> str | None:
    """The driver's version from NVML, which is not there on every machine with a GPU."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:  # a library boundary: a missing figure must not cost a trial
        return None


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def git_revision() -> str | None:
    """The revision of the working folder's repository, None outside of one."""
    try:
        command = ["git", "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
