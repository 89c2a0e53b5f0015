"""Cost: what a whole training takes in time, energy and money, and whose takes least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from runner.analysis.figure import Figure
from runner.analysis.first_steps import cold_trials
from runner.analysis.sample import Sample
from runner.record import Record, Speed


@dataclass(frozen=True)
class Cost:
    """What one training of the plan's steps takes in one cell; what cannot be computed is None.

    `expected_s` is the mean over the trials whose speed counts: over the plans that they drew, where these differ.
    `energy_j` is the device's, without that of the first step; None with phase=infer, where energy is that of the
    stream of batches, which takes another time than answers one by one. In `trainings` a whole training stands in the
    place of a trial's step, so that trainings are compared as steps are: the same pairs, intervals and verdicts.
    """

    expected_s: float | None
    energy_j: float | None
    trainings: Sample


def cost_of(sample: Sample, steps: int) -> Cost:
    """The cost of a training of so many steps in a cell.

    The start of a trial whose first step was cold is that of the warm ones: a machine pays for it once, not a training.
    """
    counted = sample.timed
    start_s = _start_s(counted, cold_trials(sample.records))
    totals_s = [training_s(record.speed, steps, start) for record, start in zip(counted, start_s, strict=True)]
    return Cost(
        expected_s=Figure.of(totals_s).mean,
        energy_j=_energy_j(sample, counted, steps),
        trainings=replace(sample, records=list(map(_with_total, counted, totals_s))),
    )


def training_s(speed: Speed | None, steps: int, start_s: float) -> float | None:
    """Seconds from a training's start to its last step; `start_s` reaches to the end of the first one.

    Each input shape that the trial met is paid for once. Shapes that it did not meet, waiting for data and evaluation
    are left out. None without a steady step time.
    """
    if speed is None or speed.step_ms is None:
        return None
    new_shapes_ms = speed.new_shapes_ms[: steps - 1]
    return start_s + (sum(new_shapes_ms) + (steps - 1 - len(new_shapes_ms)) * speed.step_ms) / 1000


def _start_s(records: Sequence[Record], cold: set[int]) -> list[float]:
    """From the start of each trial to the end of its first step, tuning and compiling included."""
    own = [record.speed.build_s + record.speed.first_step_ms / 1000 if record.speed else 0.0 for record in records]
    warm = [start for start, record in zip(own, records, strict=True) if record.number not in cold]
    if not warm:
        return own
    return [median(warm) if record.number in cold else start for start, record in zip(own, records, strict=True)]


def _with_total(record: Record, total_s: float | None) -> Record:
    total_ms = None if total_s is None else 1000 * total_s
    return replace(record, speed=replace(record.speed, step_ms=total_ms)) if record.speed else record


def _energy_j(sample: Sample, records: Sequence[Record], steps: int) -> float | None:
    if sample.cell.phase == "infer":
        return None
    batch_size = sample.cell.config.get("train", {}).get("batch_size")
    per_sample = Figure.of([record.speed.energy_j_per_sample for record in records if record.speed]).mean
    return None if batch_size is None or per_sample is None else per_sample * batch_size * steps
