"""What the process that trained leaves: one JSON file, written aside and renamed."""

import hashlib
import json
import os
import platform
import resource
import sys
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from cudnn_attached.asked import asked
from cudnn_attached.doctor import FOUND
from cudnn_attached.place import HOOK, LIBRARIES
from cudnn_attached.workers import tell_shared_states


def write_result(folder: Path, device: torch.device | None, found: dict[str, Any]) -> None:
    """Write it, with the findings so far and what is known of the process."""
    tell_shared_states(folder)
    known = {"findings": FOUND, "pid": os.getpid(), "interpreter": uuid.uuid4().hex[:12], "memory": _memory(device)}
    aside = folder / ".result.json"
    aside.write_text(json.dumps(found | known))
    aside.rename(folder / "result.json")


def environment(device: torch.device | None) -> dict[str, Any]:
    """What must be equal for two trials to be comparable, as far as this interpreter tells it."""
    cuda = device is not None and device.type == "cuda"
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": _version("torchvision"),
        "threads": torch.get_num_threads(),
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "device": device.type if device is not None else None,
        "hip": torch.version.hip,
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "launch_blocking": os.environ.get("CUDA_LAUNCH_BLOCKING"),
        "code": _code(),
        **(_cuda(device) if cuda else {}),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cuda(device: Any) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "gpu_name": properties.name,
        "gpu_uuid": str(properties.uuid),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def _memory(device: torch.device | None) -> dict[str, int | None]:
    unit, cuda = 1 if sys.platform == "darwin" else 1024, device is not None and device.type == "cuda"
    return {
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(device) if cuda else None,
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(device) if cuda else None,
    }


def _code() -> str | None:
    """The digest of the user's own modules: those under the folder of the command, or of the script.

    Trials before and after a change there must not be pooled.
    """
    given = asked()
    places = [given.home if given else ".", sys.path[0] if sys.path else "."]
    roots = {root + os.sep for one in places if (root := _real(one or "."))}
    modules = [getattr(one, "__file__", None) for one in list(sys.modules.values())]
    files = {real for file in modules if isinstance(file, str) and (real := _real(file))}
    own = [
        file
        for file in sorted(files)
        if file.startswith(tuple(roots)) and not file.startswith(HOOK) and not set(LIBRARIES) & set(file.split(os.sep))
    ]
    content = b"".join(Path(file).read_bytes() for file in own if os.path.isfile(file))
    return hashlib.sha256(content).hexdigest()[:8] if own else None


def _real(path: str) -> str | None:
    """A path without links; None where the script has removed the folder in which it works."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError:
        return None
