"""Studies of very many trials that nobody trained, with records and series as large as real ones.

Every trial differs from every other of its cell in losses, weights and predictions: the dearest case for a report.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from runner.cell import Cell
from runner.layout import record_file, series_file
from runner.mode import MODES
from runner.record import SCHEMA, Digests, Record, Speed
from runner.series import Series
from runner.study import Study
from runner.trial import Trial

STEPS, PREDICTIONS, SKETCH = 120, 512, 4096
KINDS = 50  # series on disk that differ: to draw and compress one a trial would take longer than the report
RATIOS = {"default": 1.0, "benchmark": 0.8, "deterministic": 1.2, "deterministic_benchmark": 0.9}
ENVIRONMENT = {
    "host": "node1",
    "platform": "Linux-6.18.44-x86_64-with-glibc2.39",
    "cpu": "Intel(R) Xeon(R) Platinum 8480+",
    "python": "3.12.3",
    "torch": "2.14.1+cu130",
    "torchvision": "0.29.1",
    "threads": 16,
    "blas": "mkl",
    "device": "cuda",
    "hip": None,
    "hash_seed": "0",
    "workspace": None,
    "launch_blocking": None,
    "git_revision": "0123456789abcdef0123456789abcdef01234567",
    "gpu_name": "NVIDIA H200",
    "gpu_uuid": "01234567-89ab-cdef-0123-456789abcdef",
    "driver": "580.159.04",
    "cuda": "13.0",
    "cudnn": 91900,
    "exclusive": True,
    "conv_precision": "ieee",
    "rnn_precision": "ieee",
    "matmul_precision": "ieee",
    "code": None,
}
STATE = {
    "sm_clock_mhz": 1980,
    "memory_clock_mhz": 3201,
    "temperature_c": 54,
    "power_w": 612.4,
    "utilization_percent": 100,
    "throttle_reasons": "",
    "other_processes": 0,
    "thermal_violation_ns": 0,
    "power_violation_ns": 0,
    "energy_mj": 123456789012,
    "load_1min": 1.5,
}
FLAGS = {
    "enabled": True,
    "benchmark_limit": 10,
    "algorithms": False,
    "fill_memory": True,
    "conv_tf32": False,
    "rnn_tf32": False,
    "matmul_tf32": False,
}


def deep(folder: Path, trials: int) -> Study:
    """The four modes, a quarter of the trials each."""
    return make(folder, [cell(mode) for mode in MODES.values()], trials // 4)


def wide(folder: Path, trials: int) -> Study:
    """Cells of 20 trials each: the four modes at as many learning rates as it takes."""
    modes = list(MODES.values())
    return make(folder, [cell(modes[index % 4], 1e-4 * (1 + index // 4)) for index in range(trials // 20)], 20)


def cell(mode: str, learning_rate: float = 0.003) -> Cell:
    """A cell with as many settings as a real one."""
    deterministic, benchmark = next(pair for pair, name in MODES.items() if name == mode)
    determinism = {"algorithms": False, "warn_only": False, "fill_memory": True, "workspace": None}
    return Cell(
        {
            "cudnn": {"deterministic": deterministic, "benchmark": benchmark, "enabled": True, "benchmark_limit": 10},
            "model": {"name": "resnet", "depth": 18, "cifar_stem": True},
            "dataset": {"name": "digits", "view": "image", "size": 32},
            "precision": {"name": "fp32"},
            "determinism": determinism,
            "seeds": {"base": 0, "vary": []},
            "train": {"steps": STEPS, "batch_size": 256, "optimizer": "sgd", "learning_rate": learning_rate},
            "isolation": "forkserver",
            "device": "cuda",
            "threads": 16,
            "phase": "train",
        }
    )


def make(folder: Path, cells: list[Cell], rounds: int) -> Study:
    """A study of these cells with a record, a series and a claim for each trial."""
    study, dice = Study.ask(folder, {"rounds": rounds, "version": "0.1.0"}, cells), np.random.default_rng(0)
    kinds = [packed(dice, folder / "series.npz") for _ in range(KINDS)]
    for one in cells:
        for number in range(rounds):
            trial = Trial.of(one, number, number % len(cells), "cuda:0")
            place = study.trial_folder(one.id, number)
            place.mkdir()
            written(place / "claim.json", {"schema": 1, "name": trial.claim, "owner": "synthetic"})
            written(record_file(place), {"schema": SCHEMA, **asdict(record(one, trial, dice))})
            series_file(place).write_bytes(kinds[number % KINDS])
    return study


def written(path: Path, value: Any) -> None:
    """As the runner writes JSON, but without waiting for the disk."""
    path.write_text(json.dumps(value, sort_keys=True, indent=1))


def packed(dice: np.random.Generator, path: Path) -> bytes:
    """The bytes of a series of a trial."""
    series(dice).write(path)
    content = path.read_bytes()
    path.unlink()
    return content


def series(dice: np.random.Generator) -> Series:
    """Steps, predictions and a sketch of usual size."""
    return Series(
        step_ms=dice.normal(40, 0.1, STEPS),
        enqueue_ms=dice.normal(12, 0.5, STEPS),
        wait_ms=dice.normal(0.1, 0.01, STEPS),
        shape=np.zeros(STEPS, dtype=np.int64),
        loss=dice.normal(1, 0.1, STEPS).astype(np.float32),
        data=np.random.default_rng(1).integers(-(2**63), 2**63, (STEPS, 2)),
        predictions=dice.integers(10, size=PREDICTIONS).astype(np.int32),
        sketch=dice.normal(size=SKETCH).astype(np.float32),
        evaluated=np.array([STEPS]),
        evaluations=np.array([[0.3, 0.9]]),
        evaluation_names=np.array(["loss", "accuracy"]),
    )


def record(cell: Cell, trial: Trial, dice: np.random.Generator) -> Record:
    """A finished trial's record."""
    mode = MODES[cell.config["cudnn"]["deterministic"], cell.config["cudnn"]["benchmark"]]
    step_ms = float(40 * RATIOS[mode] * np.exp(dice.normal(0, 0.002)))
    flags = FLAGS | {key: cell.config["cudnn"][key] for key in ("deterministic", "benchmark")}
    seen: dict[str, Any] = {
        "flags": {"requested": flags, "before": flags, "after": flags},
        "environment": ENVIRONMENT,
        "process": {"pid": 1000 + trial.number, "interpreter": "0123456789ab", "torch_preloaded": True},
        "digests": digests(dice),
        "metrics": {"loss": float(dice.normal(0.3, 0.01)), "accuracy": float(dice.normal(0.9, 0.01))},
        "speed": speed(step_ms, 2000.0 if cell.config["cudnn"]["benchmark"] else 0.0),
        "memory": dict.fromkeys(("peak_allocated_bytes", "peak_reserved_bytes", "peak_resident_bytes"), 2**31),
        "covariates": {"before": STATE, "after": STATE},
    }
    return Record.of(trial, "finished", None, "2026-12-01T00:00:00.000+00:00", **seen)


def digests(dice: np.random.Generator) -> Digests:
    """Equal at the start and in the data, different in everything that follows."""
    same = "0" * 32
    steps = {str(2**power): dice.bytes(16).hex() for power in range(7)}
    losses, final, metrics, predictions = (dice.bytes(16).hex() for _ in range(4))
    return Digests(same, same, losses, final, metrics, predictions, steps)


def speed(step_ms: float, tuning_ms: float) -> Speed:
    """The figures of a trial with this steady step time, whose first step took so much longer."""
    return Speed(
        steps=STEPS,
        first_step_ms=500.0 + tuning_ms,
        step_ms=step_ms,
        enqueue_ms=0.3 * step_ms,
        wait_ms=0.1,
        new_shapes_ms=[],
        samples_per_s=256_000 / step_ms,
        evaluate_samples_per_s=50_000.0,
        build_s=0.5,
        train_s=STEPS * step_ms / 1000,
        evaluate_s=0.1,
        p99_ms=1.01 * step_ms,
        steps_s=STEPS * step_ms / 1000,
        first_step_read_bytes=0,
        energy_j_per_sample=0.1,
    )
