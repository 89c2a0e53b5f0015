"""Noise: how far metrics spread; the implementation's share beside the seeds', a mode's beside the default's."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runner.analysis.candidate import LEAST_TRIALS
from runner.analysis.divergence import divergence
from runner.analysis.figure import Interval, sample_sd
from runner.analysis.sample import Sample
from runner.analysis.variance import LEAST_FOR_SPREAD, compare_spread, not_answered
from runner.analysis.words import percent
from runner.cell import Cell

NO_VALUE = "cannot be answered: a trial has no value"


@dataclass(frozen=True)
class Share:
    """A variance over another with its F interval, None where there is none, and what it says in words."""

    value: float | None
    ci95: Interval | None
    words: str


@dataclass(frozen=True)
class SeedsNoise:
    """One metric of two cells, named by their ids: one with `fixed` seeds, one with `varied` ones.

    With fixed seeds the implementation alone makes trials differ, with varied seeds both do. `share` is the variance
    with fixed seeds over that with varied ones; the sds are None below two trials and where a trial has no value.
    """

    fixed: str
    varied: str
    metric: str
    sd_fixed: float | None
    sd_varied: float | None
    share: float | None
    share_ci95: Interval | None
    words: str


def seeds_noise(samples: Sequence[Sample]) -> list[SeedsNoise]:
    """A line for each metric of each two cells of one environment that differ in nothing but fixed and varied seeds.

    The question of Zhuang et al., Randomness in Neural Network Training, MLSys 2022 (noise of the implementation
    beside that of the algorithm) and of Morin and Willetts, Non-Determinism in TensorFlow ResNets, 2020.
    """
    keyed = [(_but_seeds(one), one) for one in samples]
    fixed = [(key, one) for key, one in keyed if not one.cell.config["seeds"]["vary"]]
    varied = [(key, one) for key, one in keyed if one.cell.config["seeds"]["vary"]]
    pairs = [(own, other) for key, own in fixed for other_key, other in varied if key == other_key]
    return [_line(own, other, metric) for own, other in pairs for metric in _metrics(own, other)]


def _but_seeds(sample: Sample) -> tuple[str, str | None]:
    rest = Cell({key: value for key, value in sample.cell.config.items() if key != "seeds"})
    return rest.id, _place(sample)


def _metrics(fixed: Sample, varied: Sample) -> list[str]:
    """The metrics that both have, in the order of the records."""
    own, other = [dict.fromkeys(name for record in one.finished for name in record.metrics) for one in (fixed, varied)]
    return [name for name in own if name in other]


def _line(fixed: Sample, varied: Sample, metric: str) -> SeedsNoise:
    own, other = _values(fixed, metric), _values(varied, metric)
    streams = ", ".join(varied.cell.config["seeds"]["vary"])
    share = _share(own, other, _equal(fixed), streams) if own and other else Share(None, None, NO_VALUE)
    return SeedsNoise(
        fixed=fixed.cell.id,
        varied=varied.cell.id,
        metric=metric,
        sd_fixed=sample_sd(own) if len(own) > 1 else None,
        sd_varied=sample_sd(other) if len(other) > 1 else None,
        share=share.value,
        share_ci95=share.ci95,
        words=share.words,
    )


def _values(sample: Sample, metric: str) -> list[float]:
    """The metric's value in each trial, none at all if one is missing: the rest would be a selection."""
    values = [record.metrics.get(metric) for record in sample.finished]
    return [] if None in values else [value for value in values if value is not None]


def _equal(sample: Sample) -> str | None:
    """That all of enough trials ended bit by bit alike, None if they did not."""
    found = divergence(sample.finished, [], sample.cell.phase)
    if found.unique_weights != 1 or found.trials < LEAST_TRIALS:
        return None
    return f"{found.subject} bitwise equal with fixed seeds, {found.trials} of {found.trials}"


def _share(fixed: list[float], varied: list[float], equal: str | None, streams: str) -> Share:
    spread = compare_spread(fixed, varied)
    if equal and len(set(fixed)) == 1:  # which needs no comparison of variances
        return _nothing_added(varied, equal)
    if spread.trials < LEAST_FOR_SPREAD:
        return Share(None, None, not_answered(spread.trials))
    if spread.ratio is None or spread.ci95 is None:
        side = "fixed" if len(set(fixed)) == 1 else "varied"
        return Share(None, None, f"no share to give: with {side} seeds all values are equal")
    value, low, high = (ratio**2 for ratio in (spread.ratio, *spread.ci95))
    whole = f"of the variance that it makes together with the seeds ({streams})"
    said = f"the implementation alone makes {percent(value)} [{percent(low)}, {percent(high)}] {whole}"
    return Share(value, (low, high), f"{said}: {_verdict(spread.apart, value)}")


def _nothing_added(varied: list[float], equal: str) -> Share:
    if len(set(varied)) < 2:
        return Share(None, None, f"the implementation adds nothing, and no spread was seen with varied seeds ({equal})")
    return Share(0.0, None, f"the implementation adds nothing: all of it is the seeds' ({equal})")


def _verdict(apart: bool, share: float) -> str:
    if not apart:
        return "whether the seeds add anything to it is not told"
    return "the seeds add to it" if share < 1 else "it spreads more with these fixed seeds than with varied ones"


@dataclass(frozen=True)
class ModeNoise:
    """How far one metric spreads in a cell beside its baseline, both named by their ids; see Spread for the figures."""

    cell: str
    baseline: str
    metric: str
    ratio: float | None
    ci95: Interval | None
    p: float | None
    words: str


def modes_noise(samples: Sequence[Sample]) -> list[ModeNoise]:
    """A line for each metric of each cell and its baseline in the same environment.

    Intervals are simultaneous over the cells that share a baseline, as those of ratios.
    """
    there = {(one.cell.id, _place(one)): one for one in samples}
    own = [one for one in samples if one.cell.id != one.baseline and (one.baseline, _place(one)) in there]
    cells = {(one.baseline, one.cell.id) for one in own}
    comparisons = Counter(baseline for baseline, _ in cells)
    return [
        _beside(one, there[one.baseline, _place(one)], metric, comparisons[one.baseline])
        for one in own
        for metric in _metrics(one, there[one.baseline, _place(one)])
    ]


def _place(sample: Sample) -> str | None:
    return sample.environment.id if sample.environment else None


def _beside(sample: Sample, baseline: Sample, metric: str, comparisons: int) -> ModeNoise:
    own, other = _values(sample, metric), _values(baseline, metric)
    spread = compare_spread(own, other, 1 - 0.05 / comparisons)
    words = spread.words if own and other else NO_VALUE
    return ModeNoise(sample.cell.id, baseline.cell.id, metric, spread.ratio, spread.ci95, spread.p, words)
