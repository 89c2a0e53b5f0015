"""What must be equal for two trials to be comparable: machine, device, libraries and switches of this process."""

import json
import os
import platform
from typing import Any

import torch
import torchvision

from runner.worker.host import driver, host


def environment(device: torch.device, threads: int, exclusive: bool) -> dict[str, Any]:
    """The environment of a trial on this device. A figure that cannot be read is None."""
    return {
        **host(),
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
        **(_cuda(device) | {"exclusive": exclusive} if device.type == "cuda" else {}),
    }


def _cuda(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "gpu_name": properties.name,
        "gpu_uuid": str(properties.uuid),
        "driver": driver(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),  # on ROCm that of MIOpen
        **{name: value for name, value in os.environ.items() if torch.version.hip and name.startswith("MIOPEN_")},
    }


def describe_devices(path: str) -> int:
    """Write this machine's CUDA devices as JSON: a study's process, which never imports torch, asks."""
    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"name": device.name, "uuid": str(device.uuid)} for device in found], file)
    return 0
