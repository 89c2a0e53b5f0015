"""What this process is asked to do, from the environment; and our own modules that it shares with the trials."""

import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

VARIABLE = "CUDNN_ATTACHED"
# The environment variables by which launchers tell the processes of one training apart.
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@dataclass(frozen=True)
class Asked:
    """`folder` takes what is seen, `home` is where the command was given, `steps` is how many are watched.

    `hold`: whether the mode stays what it is when the script sets a flag. `config` has the cell's cudnn, determinism
    and precision; `variables` the watched environment variables as the command got them.
    """

    folder: str
    home: str
    steps: int
    hold: bool
    config: dict[str, Any]
    variables: dict[str, str | None]


@cache
def asked() -> Asked | None:
    """What is asked; None in a process that nobody has attached to."""
    text = os.environ.get(VARIABLE)
    return Asked(**json.loads(text)) if text else None


def rank() -> int:
    """The place of this process among those that train together; 0 where it trains alone."""
    return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), 0)


@cache
def shared(name: str) -> Any:
    """A module of runner/worker that needs torch alone, from its file: its package is not importable here."""
    path = Path(__file__).resolve().parents[2] / "worker" / f"{name}.py"
    spec = spec_from_file_location(f"cudnn_attached.shared_{name}", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
