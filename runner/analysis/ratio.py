"""The ratio of a cell's step time to its baseline's: paired where trials can be paired, with the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from scipy import stats

from runner.analysis.contention import PROBED
from runner.analysis.figure import Interval, mean_interval, sd_interval, welch_interval
from runner.analysis.looks import ROUNDS, Looks
from runner.analysis.sample import Sample
from runner.record import Plain, Record

RatioVerdict = Literal["faster", "slower", "equivalent", "undecided", "inert"]
OTHER_CARDS = "they ran on different cards"


@dataclass(frozen=True)
class Ratio:
    """Step time over the baseline's step time: below 1 is faster. What cannot be computed is None.

    `ci95` has the simultaneous `level`, that of the look that counts: 1 - share * 0.05/m; the same interval gives the
    verdict.
    `pairs` counts the pairs used; `paired` is False for Welch's interval over trials that do not make two pairs.
    `rounds` is the range, in all, that would settle an undecided ratio if it stays where it is, None in it for beyond
    MOST_ROUNDS; with `new_study` it is the range of a new study, since the looks at this one have spent their 5 %.
    """

    value: float | None
    ci95: Interval | None
    verdict: RatioVerdict
    level: float
    pairs: int = 0
    paired: bool = True
    baseline: bool = False
    rounds: tuple[int | None, int | None] | None = None
    new_study: bool = False
    why: str | None = None


def pairs_of(sample: Sample, baseline: Sample) -> list[tuple[Record, Record]]:
    """The trials of both samples whose speed counts and that share round, host and GPU (by UUID)."""
    there = {_place(record): record for record in baseline.timed}
    return [(record, there[place]) for record in sample.timed if (place := _place(record)) in there]


def _place(record: Record) -> tuple[int, Plain, Plain]:
    return record.number, *_card(record)


def _card(record: Record) -> tuple[Plain, Plain]:
    return record.environment.get("host"), record.environment.get("gpu_uuid")


def step_times(records: Sequence[Record]) -> list[float]:
    """The steady step times in milliseconds of those trials that have one."""
    return [record.speed.step_ms for record in records if record.speed and record.speed.step_ms is not None]


def compare(sample: Sample, baseline: Sample | None, comparisons: int, margin: float, looks: Looks) -> Ratio:
    """The ratio of two samples of one environment; `comparisons` is the number m that share the baseline."""
    level, inert = looks.counting.level(comparisons), sample.cuda is False
    if sample.probed:
        return _unknown(PROBED, level, inert)
    if baseline is None:
        return _unknown("no default (F,F) with the same other settings in this environment", level, inert)
    sample, baseline = (_looked_at(one, looks) for one in (sample, baseline))
    both = [pair for pair in pairs_of(sample, baseline) if len(step_times(pair)) == 2]
    if len(both) > 1:
        return _paired(both, comparisons, margin, looks, inert)
    own, other = step_times(sample.timed), step_times(baseline.timed)
    if both and min(len(own), len(other)) == 1:
        return _paired(both, comparisons, margin, looks, inert)
    if not own or not other:
        return _unknown("no steady step time that counts in both cells", level, inert)
    why = f"{'only one' if both else 'no'} round has both on the same GPU and host"
    ratio = unpaired_ratio(np.log(own).tolist(), np.log(other).tolist(), level, margin, why, inert)
    return ratio if set(map(_card, sample.timed)) & set(map(_card, baseline.timed)) else unclaimed(ratio, OTHER_CARDS)


def _looked_at(sample: Sample, looks: Looks) -> Sample:
    """The trials of the rounds that the look which counts had."""
    rounds = looks.counting.at[-1]
    records = [record for record in sample.records if record.number < rounds]
    return replace(sample, records=records) if len(records) < len(sample.records) else sample


def _paired(pairs: list[tuple[Record, Record]], comparisons: int, margin: float, looks: Looks, inert: bool) -> Ratio:
    logs = np.log([step_times(pair) for pair in pairs]) @ [1.0, -1.0]
    level = looks.counting.level(comparisons)
    ratio = paired_ratio(logs.tolist(), level, margin, inert, _further(looks, comparisons))
    return replace(ratio, new_study=ratio.rounds is not None and looks.over)


def unclaimed(ratio: Ratio, why: str) -> Ratio:
    """The ratio without interval and claim, for a reason that no further rounds remove."""
    verdict: RatioVerdict = "inert" if ratio.verdict == "inert" else "undecided"
    return replace(ratio, ci95=None, verdict=verdict, rounds=None, new_study=False, why=why)


def self_ratio(sample: Sample, level: float) -> Ratio:
    """The baseline against itself: 1 by definition."""
    if not step_times(sample.timed):
        why = PROBED if sample.probed else "no steady step time"
        return replace(_unknown(why, level, sample.cuda is False), baseline=True)
    return Ratio(1.0, (1.0, 1.0), "inert" if sample.cuda is False else "equivalent", level, baseline=True)


def paired_ratio(
    log_ratios: Sequence[float], level: float, margin: float, inert: bool = False, further: np.ndarray | None = None
) -> Ratio:
    """The ratio from one log ratio a pair: exp of the mean and of its t interval.

    `further` are the half widths that a next look would have at each of ROUNDS; without them no rounds are foretold.
    """
    interval = _exp(mean_interval(log_ratios, level))
    verdict = decide(interval, margin, inert)
    rounds = None
    if verdict == "undecided" and further is not None:
        rounds = rounds_to_settle(log_ratios, further, margin)
    return Ratio(
        value=float(np.exp(np.mean(log_ratios))),
        ci95=interval,
        verdict=verdict,
        level=level,
        pairs=len(log_ratios),
        rounds=rounds,
        why=None if interval else "one pair gives no interval",
    )


def unpaired_ratio(
    logs: Sequence[float], baseline_logs: Sequence[float], level: float, margin: float, why: str, inert: bool = False
) -> Ratio:
    """The ratio of geometric means with Welch's interval; `why` says what there is instead of pairs."""
    interval = _exp(welch_interval(logs, baseline_logs, level))
    return Ratio(
        value=float(np.exp(np.mean(logs) - np.mean(baseline_logs))),
        ci95=interval,
        verdict=decide(interval, margin, inert),
        level=level,
        paired=False,
        why=why,
    )


def decide(interval: Interval | None, margin: float, inert: bool = False) -> RatioVerdict:
    """The verdict of an interval of a ratio; the margin is symmetric on the log scale: (1/(1 + m), 1 + m)."""
    if inert:
        return "inert"
    if interval is None:
        return "undecided"
    low, high = interval
    if 1 / (1 + margin) < low and high < 1 + margin:
        return "equivalent"
    if high < 1:
        return "faster"
    return "slower" if low > 1 else "undecided"


def half_widths(levels: np.ndarray) -> np.ndarray:
    """Half the width of a t interval over each of ROUNDS at its level, for an sd of 1; infinite at level 1."""
    widths: np.ndarray = stats.t.ppf((1 + levels) / 2, ROUNDS - 1) / np.sqrt(ROUNDS)
    return widths


@cache
def _further(looks: Looks, comparisons: int) -> np.ndarray:
    return half_widths(looks.next_levels(comparisons))


def rounds_to_settle(
    log_ratios: Sequence[float], further: np.ndarray, margin: float
) -> tuple[int | None, int | None] | None:
    """How many rounds in all would settle the ratio, if its mean stays, at both ends of the sd's 95 % interval.

    Settled is an interval that excludes 1 or lies inside the margin, whichever a wider interval can do. `further` has
    the half width for each of ROUNDS, see half_widths.
    """
    spread = sd_interval(log_ratios)
    if spread is None:
        return None
    mean = abs(float(np.mean(log_ratios)))
    allowed = max(mean, float(np.log1p(margin)) - mean)
    low, high = (_first(ROUNDS[sd < allowed / further]) for sd in spread)
    return low, high


def _first(enough: np.ndarray) -> int | None:
    return int(enough[0]) if enough.size else None


def _exp(interval: Interval | None) -> Interval | None:
    return None if interval is None else (float(np.exp(interval[0])), float(np.exp(interval[1])))


def _unknown(why: str, level: float, inert: bool) -> Ratio:
    return Ratio(None, None, "inert" if inert else "undecided", level, why=why)
