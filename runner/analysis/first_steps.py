"""First steps: what start-up and tuning cost before the steps become steady; cold first steps told from warm ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from runner.analysis.figure import Figure, Interval, mean_interval
from runner.analysis.ratio import pairs_of
from runner.analysis.sample import Sample
from runner.record import Record, Speed

# A warm process finds the libraries' kernels in memory and reads next to nothing; a cold one reads some hundred MiB.
# 16 MiB take about LEAST_TUNING_S from a fast disk: less cannot be mistaken for tuning.
COLD_READ_BYTES = 16 * 2**20
# Measured cold first steps took 2.8 and 4 times as long as warm ones; warm ones differ by much less among themselves.
COLD_FACTOR = 1.5
# Less is not worth a word: from trial to trial the first steps of one cell differ by more.
LEAST_TUNING_S = 0.05


@dataclass(frozen=True)
class StartFigures:
    """What comes before the steady steps, over a cell's trials whose speed counts; None where it cannot be computed.

    first_step_ms: the median over trials without those whose first step was cold, for a process that is the first
        after a machine's start is far slower; `first_step_cold` where all were. cold_first_step_ms: the median over the
        cold ones, `cold_trials` of them; of these `cold_by_time` were seen by nothing but the time that they took.
    new_shape_ms: what the first step of a further input shape takes more than a steady step, its mean; new_shapes_s:
        these first steps all together, the mean over the same trials as first_step_ms. None with one shape.
    compile_s: what torch.compile took of the steps, the mean over trials.
    autotune_s: in a cell that tunes the median over pairs of what the first step and those of further shapes take more
        than the baseline's, without compile_s, with the t interval of its mean; `autotune_cold` where every pair had a
        cold trial; `autotune_seen` whether it is a cost at all: LEAST_TUNING_S or more, 0 not in the interval.
    """

    first_step_ms: float | None
    first_step_cold: bool
    cold_first_step_ms: float | None
    cold_trials: int
    cold_by_time: int
    new_shape_ms: float | None
    new_shapes_s: float | None
    compile_s: float | None
    autotune_s: float | None
    autotune_s_ci95: Interval | None
    autotune_cold: bool
    autotune_seen: bool


def start_figures(sample: Sample, baseline: Sample | None) -> StartFigures:
    """The start of a sample's trainings; nothing is said about tuning without a baseline or CUDA or if none tunes."""
    speeds = {record.number: record.speed for record in sample.timed if record.speed}
    numbers = cold_trials(sample.records)
    cold = [speed for number, speed in speeds.items() if number in numbers]
    warm = [speed for number, speed in speeds.items() if number not in numbers]
    usual = warm or cold
    tuned = baseline if sample.cuda and sample.tunes else None
    excess_s, autotune_cold = tuning_excess_s(sample, tuned) if tuned else ([], False)
    return StartFigures(
        first_step_ms=_median_first_step_ms(usual),
        first_step_cold=bool(cold) and not warm,
        cold_first_step_ms=_median_first_step_ms(cold),
        cold_trials=len(cold),
        cold_by_time=len(numbers.intersection(speeds) - _that_read(sample.records)),
        new_shape_ms=Figure.of([_new_shape_ms(speed) for speed in usual]).mean,
        new_shapes_s=Figure.of([_new_shapes_s(speed) for speed in usual]).mean,
        compile_s=Figure.of([speed.compile_s for speed in speeds.values()]).mean,
        autotune_s=median(excess_s) if excess_s else None,
        autotune_s_ci95=mean_interval(excess_s),
        autotune_cold=autotune_cold,
        autotune_seen=_seen(excess_s),
    )


def _median_first_step_ms(speeds: Sequence[Speed]) -> float | None:
    return median(speed.first_step_ms for speed in speeds) if speeds else None


def _new_shape_ms(speed: Speed) -> float | None:
    if not speed.new_shapes_ms or speed.step_ms is None:
        return None
    return sum(speed.new_shapes_ms) / len(speed.new_shapes_ms) - speed.step_ms


def _new_shapes_s(speed: Speed) -> float | None:
    return sum(speed.new_shapes_ms) / 1000 if speed.new_shapes_ms else None


def cold_trials(records: Sequence[Record]) -> set[int]:
    """The numbers of a cell's trials whose first step was cold: it read kernels that the machine had not loaded yet.

    Seen by what the process read from the disk, COLD_READ_BYTES or more. That counter is not everywhere, and blind on
    some file systems. So the first trial of the cell on its host is cold too if its first step, without what
    torch.compile took, lasted COLD_FACTOR times as long as the slowest of at least two others there. Without CUDA there
    are no kernels to load.
    """
    records = [record for record in records if record.environment.get("device") == "cuda"]
    read = _that_read(records)
    others = [record for record in records if record.number not in read]
    return read | {first.number for first in _first_on_host(records) if _stands_out(first, others)}


def _that_read(records: Iterable[Record]) -> set[int]:
    speeds = {record.number: record.speed for record in records if record.complete and record.speed}
    return {number for number, speed in speeds.items() if (speed.first_step_read_bytes or 0) >= COLD_READ_BYTES}


def _first_on_host(records: Iterable[Record]) -> list[Record]:
    """The trial that started first on each host, whatever became of it: it paid, and those after it did not."""
    by_host: dict[object, Record] = {}
    for record in sorted(records, key=lambda record: record.started):
        by_host.setdefault(record.environment.get("host"), record)
    return list(by_host.values())


def _stands_out(first: Record, records: Iterable[Record]) -> bool:
    here = (one for one in records if one.complete and one.environment.get("host") == first.environment.get("host"))
    others = [_uncompiled_s(one.speed, one.speed.first_step_ms) for one in here if one is not first and one.speed]
    own = _uncompiled_s(first.speed, first.speed.first_step_ms) if first.complete and first.speed else 0.0
    return len(others) > 1 and own >= COLD_FACTOR * max(others)


def tuning_excess_s(sample: Sample, baseline: Sample) -> tuple[list[float], bool]:
    """What the first step and those of new shapes take more than the baseline's, in seconds, in each pair.

    Without what torch.compile took of them. Pairs with a cold trial are left out; if there are no others they are
    used, and True says so.
    """
    cold, cold_there = cold_trials(sample.records), cold_trials(baseline.records)
    pairs = [(own, other) for own, other in pairs_of(sample, baseline) if own.speed and other.speed]
    warm = [pair for pair in pairs if pair[0].number not in cold and pair[1].number not in cold_there]
    excess = [
        _first_steps_s(own.speed) - _first_steps_s(other.speed)
        for own, other in warm or pairs
        if own.speed and other.speed
    ]
    return excess, bool(pairs) and not warm


def _first_steps_s(speed: Speed) -> float:
    return _uncompiled_s(speed, speed.first_step_ms + sum(speed.new_shapes_ms))


def _uncompiled_s(speed: Speed, steps_ms: float) -> float:
    return steps_ms / 1000 - (speed.compile_s or 0.0)


def _seen(excess_s: Sequence[float]) -> bool:
    interval = mean_interval(excess_s)
    return bool(excess_s) and median(excess_s) >= LEAST_TUNING_S and (interval is None or interval[0] > 0)
