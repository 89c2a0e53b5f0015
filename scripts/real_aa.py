"""Real A/A studies: one mode under four names, so that every difference that is claimed is a false alarm."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from runner.analysis.looks import Looks
from runner.analysis.ratio import paired_ratio, step_times
from runner.plan import USUAL
from runner.study import Study

ROUNDS = 5
# A limit cannot act while benchmark is off.
NAMES = ["cudnn=default", "cudnn.benchmark_limit=10,11,12,13"]
SMALL = ["model=lstm", "model.layers=1", "model.hidden_size=16", "train.steps=60", "train.batch_size=16", "threads=1"]


def real_studies(count: int, words: Sequence[str]) -> dict[str, Any]:
    """So many studies of the same mode under four names, each with settings and processes of its own.

    Counted are those in which any of the three names is claimed to be faster or slower than the first: at the level
    that such a study has at 5 rounds, and at the level of a study with the whole 5 %, there without a margin.
    """
    settings = [*NAMES, *(words or SMALL), f"trials={ROUNDS}", "tracking=off"]
    found = [_one_study(settings) for _ in range(count)]
    logs = np.array([logs for logs, _ in found])
    alarms = {
        "as_printed": sum(false_claim(study, Looks((ROUNDS,)).level(3), USUAL.margin) for study in logs),
        "whole_5_percent_no_margin": sum(false_claim(study, Looks((20,)).level(3), 0.0) for study in logs),
    }
    environment = found[0][1]
    return {
        "row": f"aa-{environment['device']}",
        "words": settings,
        "studies": count,
        "rounds": ROUNDS,
        "noise": float(np.std(logs, axis=1, ddof=1).mean() / np.sqrt(2)),
        "alarms": alarms,
        "environment": {key: environment.get(key) for key in ("device", "gpu_name", "torch", "cudnn", "threads")},
    }


def _one_study(settings: list[str]) -> tuple[np.ndarray, dict[str, Any]]:
    """The log ratios (rounds, 3) to the first name, and the environment."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "runner", "-m", *settings, "study=study"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        study = Study.open(Path(folder, "study"))
        records, cells = study.records(), [cell.id for cell in study.cells()]
    times = np.array([step_times([one for one in records if one.cell == cell]) for cell in cells])
    return np.log(times[1:] / times[0]).T, dict(records[0].environment)


def false_claim(study: np.ndarray, level: float, margin: float) -> bool:
    """Whether any of the names, one a column of log ratios, is claimed to be faster or slower than the first."""
    return any(paired_ratio(logs, level, margin).verdict in ("faster", "slower") for logs in study.T.tolist())
