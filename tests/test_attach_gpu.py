"""Attached scripts on an NVIDIA GPU."""

import subprocess
from pathlib import Path
from statistics import median

import pytest
import torch
from attachments import PYTHON, SCRIPTS, attach

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available() or torch.version.hip is not None, reason="needs an NVIDIA GPU"),
]
TIMES = 3


def test_step_times_are_those_of_an_outside_stopwatch(tmp_path: Path) -> None:
    """The same script alone and attached, in turn: within 1 % of each other."""
    alone, attached = [], []
    for number in range(TIMES):
        done = subprocess.run([PYTHON, "stopwatch.py"], cwd=SCRIPTS, capture_output=True, text=True, check=True)
        alone.append(float(done.stdout.split(":")[1]))
        record = attach([PYTHON, "stopwatch.py"], tmp_path, number=number, steps=100, device="cuda")
        assert record.speed is not None and record.speed.step_ms is not None, record.reason
        attached.append(record.speed.step_ms)
    print("alone", alone, "attached", attached)
    assert median(attached) == pytest.approx(median(alone), rel=0.01)


def test_the_mode_is_on_and_the_environment_known(tmp_path: Path) -> None:
    tuned = {"deterministic": False, "benchmark": True, "enabled": True, "benchmark_limit": 10}
    record = attach([PYTHON, "stopwatch.py"], tmp_path, steps=12, device="cuda", cudnn=tuned)
    assert record.outcome == "finished", record.reason
    assert record.flags["after"]["benchmark"] is True
    assert record.environment["device"] == "cuda" and record.environment["gpu_uuid"] and record.environment["cudnn"]
    assert record.memory["peak_allocated_bytes"]
