"""The group `attach` of conf/ as a frozen dataclass, and what of the settings is left where a script is attached to."""

import os
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Attach:
    """The script that is attached to, with phase=attach.

    `command` are its words; `hold` keeps the flags of the mode, and what determinism=full asks for, as they are when
    the script sets them.
    """

    command: list[str] = field(default_factory=list)
    hold: bool = True


KEPT = "CUDNN_ATTACHED_MLFLOW"  # the variable that takes the user's own variables for MLflow to the script

# What a cell of an attached script has of all settings: everything else is up to the script.
IN_CELL = ("phase", "attach", "cudnn", "precision", "determinism", "seeds", "probe", "device", "threads")


def attached(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of an attached script's cell, from those that a training of ours would have."""
    found: dict[str, Any] = {name: config[name] for name in IN_CELL}
    steps = {"steps": config["train"]["steps"], "compile": "off"}
    script = {"model": {"name": script_of(config["attach"]["command"])}, "dataset": {"name": "its own data"}}
    return found | script | {"train": steps, "isolation": "spawn"}  # a new interpreter for each trial


def script_of(command: list[str]) -> str:
    """What people call a command: "train.py" of "python -u src/train.py --lr 1", "pkg" of "python -m pkg"."""
    for before, word in pairwise(command):
        if before == "-m" or re.search(r"\.(py|sh)$", word):
            return os.path.basename(word)
    return os.path.basename(command[0]) if command else ""
