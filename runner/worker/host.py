"""What is known of this machine without torch."""

import os
import platform
import socket
import subprocess
from typing import Any

# Variables that have PyTorch's libraries use other instructions of the processor, and so round otherwise.
CPU_SWITCHES = ("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS")


def host() -> dict[str, Any]:
    """Name, platform and processor of the machine, and the git revision of the working folder; None if unknown."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cpu_switches": cpu_switches(),
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


def cpu_switches() -> str | None:
    """Those of CPU_SWITCHES that are set, with their values; None if none is."""
    return " ".join(f"{name}={os.environ[name]}" for name in CPU_SWITCHES if name in os.environ) or None


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
