"""Study folders with synthetic records and series: what is planted in them is known, so it can be looked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from runner.analysis.environment import Environment
from runner.analysis.sample import Sample, baselines
from runner.cell import Cell
from runner.layout import record_file, series_file
from runner.mode import MODES, mode_name
from runner.record import Digests, Outcome, Record, Speed
from runner.series import Series
from runner.study import Study
from runner.trial import Trial

PAIRS = {name: pair for pair, name in MODES.items()}
CPU = {"host": "node1", "device": "cpu", "gpu_name": None, "gpu_uuid": None, "torch": "2.14.1", "cpu": "CPU X"}
GPU = {"host": "node1", "device": "cuda", "gpu_name": "NVIDIA H200", "gpu_uuid": "GPU-1", "torch": "2.14.1"}


@dataclass(frozen=True)
class Plant:
    """What the trials of one cell are made to show.

    `ratio` multiplies the step time, `noise` is the sd of its logarithm, `tuning_ms` is added to the first step.
    The trials part at `data_step`, `loss_step`, `weights_step` (from 1); `evaluation` parts the predictions only.
    `outcomes` names the trials that do not finish; `metrics` overrides those of single trials.
    """

    ratio: float = 1.0
    noise: float = 0.002
    tuning_ms: float = 0.0
    data_step: int | None = None
    loss_step: int | None = None
    weights_step: int | None = None
    evaluation: bool = False
    enqueue_share: float = 0.3
    steady: bool = True
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    metrics: Mapping[int, dict[str, float | None]] = field(default_factory=dict)
    flags_after: dict[str, Any] = field(default_factory=dict)


def make_cell(mode: str = "default", **settings: Any) -> Cell:
    """A cell of a mode; keyword arguments replace whole top-level settings."""
    deterministic, benchmark = PAIRS[mode]
    cudnn = {"deterministic": deterministic, "benchmark": benchmark, "enabled": True, "benchmark_limit": 10}
    return Cell(
        {
            "cudnn": cudnn,
            "model": {"name": "resnet", "depth": 18},
            "dataset": {"name": "digits"},
            "precision": "fp32",
            "seeds": {"base": 0, "vary": []},
        }
        | settings
    )


def make_record(cell: Cell, number: int = 0, plant: Plant | None = None, **changes: Any) -> Record:
    """One trial's record; keyword arguments replace fields."""
    plant = plant or Plant()
    rng = np.random.default_rng([number, int(cell.id, 16)])
    outcome = plant.outcomes.get(number, "finished")
    done = outcome == "finished"
    flags = {key: cell.config["cudnn"][key] for key in ("deterministic", "benchmark")}
    trial = Trial.of(cell, number, 0, "cuda:0")
    record = Record(
        cell=cell.id,
        number=number,
        position=list(PAIRS).index(mode_name(cell.config["cudnn"])),
        outcome=outcome,
        reason=None if done else f"planted: {outcome}",
        refused=False,
        started="2026-12-01T00:00:00+00:00",
        ended="2026-12-01T00:01:00+00:00",
        flags={"requested": flags, "before": flags, "after": flags | plant.flags_after},
        environment=dict(GPU),
        process={"pid": 1000 + number, "interpreter": "forkserver-1"},
        seeds=trial.seeds,
        digests=_digests(number, plant) if done else None,
        metrics=plant.metrics.get(number, {"accuracy": 0.9, "loss": 0.3}) if done else {},
        speed=_speed(rng, plant) if done else None,
        memory={
            "peak_allocated_bytes": 2_300_000_000,
            "peak_reserved_bytes": 2_500_000_000,
            "peak_resident_bytes": 812_000_000,
        },
    )
    return replace(record, **changes)


STEPS, STEP_MS = 16, 40.0


def _speed(rng: np.random.Generator, plant: Plant) -> Speed:
    step_ms = float(STEP_MS * plant.ratio * np.exp(rng.normal(0, plant.noise)))
    return Speed(
        steps=STEPS,
        first_step_ms=500.0 + plant.tuning_ms,
        step_ms=step_ms if plant.steady else None,
        enqueue_ms=plant.enqueue_share * step_ms,
        wait_ms=0.1,
        new_shapes_ms=[],
        samples_per_s=256_000 / step_ms,
        evaluate_samples_per_s=50_000.0,
        build_s=0.5,
        train_s=1.0,
        evaluate_s=0.1,
    )


def digest(*parts: Any) -> str:
    """A digest of the shape that records have."""
    return sha256(repr(parts).encode()).hexdigest()[:32]


def _digests(number: int, plant: Plant) -> Digests:
    def after(step: int, parting: int | None, name: str) -> str:
        return digest(name, step, number if parting is not None and step >= parting else None)

    return Digests(
        initial=digest("initial"),
        data=after(STEPS, plant.data_step, "data"),
        losses=after(STEPS, plant.loss_step, "losses"),
        final=after(STEPS, plant.weights_step, "weights"),
        metrics=digest("metrics"),
        predictions=digest("predictions", number if plant.evaluation else None),
        steps={str(step): after(step, plant.weights_step, "weights") for step in (1, 2, 4, 8, 16)},
    )


def make_sample(
    mode: str, step_ms: Sequence[Any], environment: dict[str, Any] = GPU, first_ms: float = 500.0, **speed: Any
) -> Sample:
    """A sample of one trial for each of these step times; keyword arguments replace figures of the speed."""
    cell, records = make_cell(mode), []
    for number, value in enumerate(step_ms):
        record = make_record(cell, number, environment=environment)
        assert record.speed is not None
        figures = {"step_ms": value, "enqueue_ms": value and 0.3 * value, "first_step_ms": first_ms} | speed
        times = replace(record.speed, **figures)
        records.append(replace(record, speed=times))
    return Sample(cell, mode, Environment.of(records[0]), records, baselines([cell])[cell.id])


def make_series(number: int = 0, plant: Plant | None = None, **changes: Any) -> Series:
    """One trial's series; keyword arguments replace fields."""
    plant = plant or Plant()
    loss = np.linspace(2.3, 0.3, STEPS, dtype=np.float32)
    data = np.arange(2 * STEPS).reshape(STEPS, 2)
    if plant.loss_step is not None:
        loss[plant.loss_step - 1 :] += np.float32(1e-4 * number)
    if plant.data_step is not None:
        data[plant.data_step - 1 :] += number
    parted = number if plant.weights_step is not None or plant.evaluation else 0
    predictions = np.arange(100) % 10
    predictions[:parted] = 10 + parted
    fields = {
        "step_ms": np.full(STEPS, STEP_MS * plant.ratio),
        "enqueue_ms": np.full(STEPS, STEP_MS * plant.enqueue_share),
        "wait_ms": np.full(STEPS, 0.1),
        "shape": np.zeros(STEPS, dtype=np.int64),
        "loss": loss,
        "data": data,
        "predictions": predictions,
        "sketch": np.full(8, number if plant.weights_step is not None else 0, dtype=np.float32),
        "evaluated": np.array([STEPS]),
        "evaluations": np.array([[0.9, 0.3]]),
        "evaluation_names": np.array(["accuracy", "loss"]),
    }
    return Series(**fields | changes)


def make_study(
    folder: Path,
    plants: Sequence[tuple[Cell, Plant]],
    rounds: int = 5,
    environment: Callable[[Cell, int], dict[str, Any]] = lambda cell, number: GPU,
    interpreter: Callable[[int], str] = lambda number: "forkserver-1",
) -> Study:
    """A study folder with `rounds` trials of each cell, its environment and interpreter by trial number."""
    study = Study.ask(folder, {"rounds": rounds, "version": "0.1.0"}, [cell for cell, _ in plants])
    for number in range(rounds):
        for cell, plant in plants:
            where = {"environment": environment(cell, number), "process": {"interpreter": interpreter(number)}}
            record = make_record(cell, number, plant, **where)
            trial_folder = study.claim(Trial.of(cell, number, record.position, "cuda:0"), "me")
            assert trial_folder is not None
            if record.complete:
                make_series(number, plant).write(series_file(trial_folder))
            record.write(record_file(trial_folder))
    return study


def four_modes(folder: Path, rounds: int = 5, **changes: Any) -> Study:
    """The usual study: benchmark 20 % faster and not repeatable, deterministic slower and repeatable."""
    plants = [
        (make_cell("default"), Plant(loss_step=3, weights_step=3)),
        (make_cell("benchmark"), Plant(ratio=0.8, tuning_ms=2000, loss_step=2, weights_step=1)),
        (make_cell("deterministic"), Plant(ratio=1.2)),
        (make_cell("deterministic_benchmark"), Plant(ratio=0.9, tuning_ms=1900)),
    ]
    return make_study(folder, plants, rounds, **changes)
