"""Speed and memory of a cell: step time, start-up and tuning, break-even, plans drawn, host-bound steps."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.analysis.contention import crowded, doubts, power_capped
from runner.analysis.figure import Figure
from runner.analysis.first_steps import StartFigures, start_figures
from runner.analysis.host_bound import mostly_host_bound
from runner.analysis.lottery import StepGroup, step_groups
from runner.analysis.ratio import Ratio, step_times
from runner.analysis.sample import Sample
from runner.record import Record, Speed


@dataclass(frozen=True)
class LeftOut:
    """A finished trial whose speed does not count, and why."""

    trial: int
    why: str


@dataclass(frozen=True)
class SpeedFigures(StartFigures):
    """Speed of one cell over its finished trials whose speed counts; what cannot be computed is None.

    steps: that a trial took. shapes: input shapes that it met.
    step_ms: the steady step; None where the steps are too few for one. p99_ms, samples_per_s, evaluate_samples_per_s,
        wait_ms, enqueue_ms, lag_ms, energy_j_per_sample, and steps_s, all steps together: means over trials.
    synchronizing: the most operations that made the host wait for the device in a step of any trial.
    break_even_steps: autotune_s over the gain per step, counted in steady steps.
    plans: where trials of a cell that tunes drew different plans, each of them, the fastest first; otherwise, and
        without CUDA, empty. groups: the same of a cell that does not tune, whose trials were disturbed.
        spread: the largest step_ms over the smallest.
    left_out: trials that finished and count in no figure of speed. power_capped: how many of the others the power
        limit held down, which is a card's usual state at full load. crowded: how many began on a busy host.
    Memory is the maximum over all finished trials: what was enough for all. With a probe there is none either.
    """

    steps: int | None
    shapes: int | None
    step_ms: Figure | None
    p99_ms: float | None
    steps_s: float | None
    samples_per_s: float | None
    evaluate_samples_per_s: float | None
    break_even_steps: float | Literal["never"] | None
    plans: list[StepGroup]
    groups: list[StepGroup]
    spread: float | None
    wait_ms: float | None
    enqueue_ms: float | None
    lag_ms: float | None
    synchronizing: int | None
    host_bound: bool | None
    energy_j_per_sample: float | None
    peak_memory_bytes: int | None
    peak_memory_kind: Literal["allocated", "resident"]
    peak_reserved_bytes: int | None
    left_out: list[LeftOut]
    power_capped: int
    crowded: int
    ratio_to_baseline: Ratio


def speed_figures(sample: Sample, baseline: Sample | None, ratio: Ratio) -> SpeedFigures:
    """The speed of a sample beside its baseline's, given their ratio."""
    counted, measured = sample.timed, [] if sample.probed else sample.finished
    speeds = [record.speed for record in counted if record.speed]
    step_ms = Figure.of([speed.step_ms for speed in speeds], lower=0.0)
    start = start_figures(sample, None if ratio.baseline else baseline)
    groups = step_groups(counted, baseline.timed if baseline else []) if sample.cuda else []
    kind: Literal["allocated", "resident"] = "allocated" if sample.cuda else "resident"
    return SpeedFigures(
        **vars(start),
        steps=speeds[0].steps if speeds else None,
        shapes=max((1 + len(speed.new_shapes_ms) for speed in speeds), default=None),
        step_ms=step_ms if step_ms.mean is not None else None,
        p99_ms=_mean(speeds, lambda speed: speed.p99_ms),
        steps_s=_mean(speeds, lambda speed: speed.steps_s),
        samples_per_s=_mean(speeds, lambda speed: speed.samples_per_s),
        evaluate_samples_per_s=_mean(speeds, lambda speed: speed.evaluate_samples_per_s),
        break_even_steps=_break_even(baseline, ratio, start.autotune_s),
        plans=groups if sample.tunes else [],
        groups=[] if sample.tunes else groups,
        spread=_spread(step_times(counted)),
        wait_ms=_mean(speeds, lambda speed: speed.wait_ms),
        enqueue_ms=_mean(speeds, lambda speed: speed.enqueue_ms),
        lag_ms=_mean(speeds, lambda speed: speed.lag_ms),
        synchronizing=max((one.synchronizing for one in speeds if one.synchronizing is not None), default=None),
        host_bound=mostly_host_bound(speeds) if sample.cuda else None,
        energy_j_per_sample=_mean(speeds, lambda speed: speed.energy_j_per_sample),
        peak_memory_bytes=_peak(measured, f"peak_{kind}_bytes"),
        peak_memory_kind=kind,
        peak_reserved_bytes=_peak(measured, "peak_reserved_bytes"),
        left_out=[LeftOut(one.number, "; ".join(why)) for one in measured if (why := doubts(one))],
        power_capped=sum(map(power_capped, counted)),
        crowded=sum(map(crowded, counted)),
        ratio_to_baseline=ratio,
    )


def _mean(speeds: Iterable[Speed], figure: Callable[[Speed], float | None]) -> float | None:
    return Figure.of([figure(speed) for speed in speeds]).mean


def _spread(step_ms: Sequence[float]) -> float | None:
    return max(step_ms) / min(step_ms) if len(step_ms) > 1 else None


def _peak(records: Iterable[Record], key: str) -> int | None:
    return max((value for record in records if (value := record.memory.get(key)) is not None), default=None)


def _break_even(baseline: Sample | None, ratio: Ratio, autotune_s: float | None) -> float | Literal["never"] | None:
    if autotune_s is None or baseline is None or ratio.ci95 is None or ratio.value is None:
        return None
    if ratio.ci95[1] >= 1:
        return None if ratio.verdict == "undecided" else "never"
    base = Figure.of(step_times(baseline.timed)).mean
    return max(autotune_s, 0.0) * 1000 / (base * (1 - ratio.value)) if base else None
