"""Speed and memory of a cell: step time, tuning cost, break-even, host-bound steps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from runner.analysis.figure import Figure, Interval, mean_interval
from runner.analysis.ratio import Ratio, pairs_of
from runner.analysis.sample import Sample
from runner.record import Record, Speed

# Less than 1, because the last kernels still run when the host has handed over the step: an LSTM whose steps follow
# the host's pace to the millisecond shows 0.95.
HOST_BOUND = 0.9
# Less is not worth a word: from trial to trial the first steps of one cell differ by more.
LEAST_TUNING_S = 0.05


@dataclass(frozen=True)
class SpeedFigures:
    """Speed of one cell over its finished trials; what cannot be computed is None.

    `step_ms` is None where the steps are too few for a steady figure; `samples_per_s`, `wait_ms`, `enqueue_ms` are
    means over trials; `first_step_ms` is the median over trials, because the first process after a machine's
    start is far slower; `autotune_s` is the median over pairs of the first step's excess over the baseline's, with
    the t interval of its mean, and `autotune_seen` whether it is a cost at all: LEAST_TUNING_S or more, 0 not in the
    interval; `break_even_steps` is that cost over the gain per step. Memory is the maximum over trials: what was
    enough for all.
    """

    steps: int | None
    step_ms: Figure | None
    samples_per_s: float | None
    first_step_ms: float | None
    autotune_s: float | None
    autotune_s_ci95: Interval | None
    autotune_seen: bool
    break_even_steps: float | Literal["never"] | None
    wait_ms: float | None
    enqueue_ms: float | None
    host_bound: bool | None
    peak_memory_bytes: int | None
    peak_memory_kind: Literal["allocated", "resident"]
    peak_reserved_bytes: int | None
    ratio_to_baseline: Ratio


def speed_figures(sample: Sample, baseline: Sample | None, ratio: Ratio) -> SpeedFigures:
    """The speed of a sample beside its baseline's, given their ratio."""
    finished = sample.finished
    speeds = [record.speed for record in finished if record.speed]
    step_ms = Figure.of([speed.step_ms for speed in speeds])
    enqueue_ms = _mean(speeds, lambda speed: speed.enqueue_ms)
    excess = [] if ratio.baseline or baseline is None or not sample.cuda else _first_step_excess(sample, baseline)
    autotune_s = median(excess) if excess else None
    kind: Literal["allocated", "resident"] = "allocated" if sample.cuda else "resident"
    return SpeedFigures(
        steps=speeds[0].steps if speeds else None,
        step_ms=step_ms if step_ms.mean is not None else None,
        samples_per_s=_mean(speeds, lambda speed: speed.samples_per_s),
        first_step_ms=median(speed.first_step_ms for speed in speeds) if speeds else None,
        autotune_s=autotune_s,
        autotune_s_ci95=mean_interval(excess),
        autotune_seen=_seen(excess),
        break_even_steps=_break_even(sample, baseline, ratio, autotune_s),
        wait_ms=_mean(speeds, lambda speed: speed.wait_ms),
        enqueue_ms=enqueue_ms,
        host_bound=_host_bound(enqueue_ms, step_ms.mean) if sample.cuda else None,
        peak_memory_bytes=_peak(finished, f"peak_{kind}_bytes"),
        peak_memory_kind=kind,
        peak_reserved_bytes=_peak(finished, "peak_reserved_bytes"),
        ratio_to_baseline=ratio,
    )


def _mean(speeds: Iterable[Speed], figure: Callable[[Speed], float | None]) -> float | None:
    return Figure.of([figure(speed) for speed in speeds]).mean


def _host_bound(enqueue_ms: float | None, step_ms: float | None) -> bool | None:
    return None if enqueue_ms is None or step_ms is None else enqueue_ms >= HOST_BOUND * step_ms


def _peak(records: Iterable[Record], key: str) -> int | None:
    return max((value for record in records if (value := record.memory.get(key)) is not None), default=None)


def _first_step_excess(sample: Sample, baseline: Sample) -> list[float]:
    """What the first step takes more than the baseline's, in seconds, in each pair."""
    pairs = ((own.speed, other.speed) for own, other in pairs_of(sample, baseline))
    return [(own.first_step_ms - other.first_step_ms) / 1000 for own, other in pairs if own and other]


def _seen(excess: list[float]) -> bool:
    interval = mean_interval(excess)
    return bool(excess) and median(excess) >= LEAST_TUNING_S and (interval is None or interval[0] > 0)


def _break_even(
    sample: Sample, baseline: Sample | None, ratio: Ratio, autotune_s: float | None
) -> float | Literal["never"] | None:
    if autotune_s is None or baseline is None or ratio.ci95 is None or ratio.value is None:
        return None
    if ratio.ci95[1] >= 1:
        return None if ratio.verdict == "undecided" else "never"
    base = Figure.of([record.speed.step_ms for record in baseline.finished if record.speed]).mean
    return max(autotune_s, 0.0) * 1000 / (base * (1 - ratio.value)) if base else None
