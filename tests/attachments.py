"""Trials of attached scripts, done as a study does them: in processes of their own, without the study around them."""

import os
import sys
from pathlib import Path
from typing import Any

from runner import isolate
from runner.cell import Cell
from runner.layout import series_file, trial_file
from runner.record import Record
from runner.series import Series
from runner.trial import Trial

SCRIPTS = Path(__file__).parent / "scripts_attach"
PYTHON = sys.executable


def cell_of(command: list[str], steps: int = 10, hold: bool = True, **settings: Any) -> Cell:
    """The cell of an attached command in the default mode; keyword arguments replace whole settings."""
    return Cell(
        {
            "phase": "attach",
            "attach": {"command": command, "hold": hold},
            "cudnn": {"deterministic": False, "benchmark": False, "enabled": True, "benchmark_limit": 10},
            "precision": {"name": "default"},
            "determinism": {"algorithms": False, "warn_only": False, "fill_memory": True, "workspace": None},
            "seeds": {"base": 0, "vary": []},
            "device": "cpu",
            "threads": 1,
            "isolation": "spawn",
            "train": {"steps": steps, "compile": "off"},
        }
        | settings
    )


def attach(
    command: list[str], folder: Path, home: Path = SCRIPTS, number: int = 0, timeout: float = 600, **cell: Any
) -> Record:
    """Do one trial of a command, given in `home`; its folder is made in `folder`."""
    trial_folder = folder / f"trial-{number}"
    trial_folder.mkdir(parents=True)
    made = cell_of(command, **cell)
    trial = Trial.of(made, number, 0, made.config["device"], exclusive=False)
    trial.write(trial_file(trial_folder))
    return isolate.run(trial, trial_folder, str(home), timeout)


def script(folder: Path, text: str, name: str = "train.py") -> list[str]:
    """The command that runs a script of this text, which is written into the folder."""
    (folder / name).write_text(text)
    return [PYTHON, name]


def series_of(folder: Path, number: int = 0) -> Series:
    """The series of a trial."""
    return Series.read(series_file(folder / f"trial-{number}"))


def log_of(folder: Path, number: int = 0) -> str:
    """What a trial printed."""
    return (folder / f"trial-{number}" / "log.txt").read_text()


def alone(**variables: str) -> dict[str, str]:
    """The environment for a script that nobody attaches to."""
    return {**os.environ, **variables}
