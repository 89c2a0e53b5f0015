"""What must be equal for two trials to be comparable: machine, device, libraries and switches of this process."""

import json
import os
import platform
import socket
import subprocess
from typing import Any

import torch
import torchvision


def environment(device: torch.device, threads: int, exclusive: bool) -> dict[str, Any]:
    """The environment of a trial on this device. A figure that cannot be read is None."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "threads": threads,
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "device": device.type,
        "hip": torch.version.hip,
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "launch_blocking": os.environ.get("CUDA_LAUNCH_BLOCKING"),
        "git_revision": git_revision(),
        **(_cuda(device) | {"exclusive": exclusive} if device.type == "cuda" else {}),
    }


def _cuda(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "gpu_name": properties.name,
        "gpu_uuid": str(properties.uuid),
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def _driver() -> str | None:
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


def describe_devices(path: str) -> int:
    """Write this machine's CUDA devices as JSON: a study's process, which never imports torch, asks."""
    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"name": device.name, "uuid": str(device.uuid)} for device in found], file)
    return 0
