"""The ratio of a cell's step time to its baseline's: paired where trials can be paired, with the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from runner.analysis.figure import Interval, mean_interval, sd_interval, welch_interval
from runner.analysis.sample import Sample
from runner.record import Plain, Record

MARGIN = 0.02
MOST_ROUNDS = 1000
RatioVerdict = Literal["faster", "slower", "equivalent", "undecided", "inert"]


@dataclass(frozen=True)
class Ratio:
    """Step time over the baseline's step time: below 1 is faster. What cannot be computed is None.

    `ci95` has the simultaneous `level` 1 - 0.05/m; the same interval gives the verdict. `pairs` counts the pairs used;
    `paired` is False for Welch's interval over trials that do not make two pairs. `rounds` is the range, in all, that
    would settle an undecided ratio if it stays where it is, None in it for beyond MOST_ROUNDS.
    """

    value: float | None
    ci95: Interval | None
    verdict: RatioVerdict
    level: float
    pairs: int = 0
    paired: bool = True
    baseline: bool = False
    rounds: tuple[int | None, int | None] | None = None
    why: str | None = None


def pairs_of(sample: Sample, baseline: Sample) -> list[tuple[Record, Record]]:
    """The finished trials of both samples that share round, host and GPU (by UUID)."""
    there = {_place(record): record for record in baseline.finished}
    return [(record, there[_place(record)]) for record in sample.finished if _place(record) in there]


def _place(record: Record) -> tuple[int, Plain, Plain]:
    return record.number, record.environment.get("host"), record.environment.get("gpu_uuid")


def step_times(records: Sequence[Record]) -> list[float]:
    """The steady step times in milliseconds of those trials that have one."""
    return [record.speed.step_ms for record in records if record.speed and record.speed.step_ms is not None]


def compare(sample: Sample, baseline: Sample | None, comparisons: int, margin: float = MARGIN) -> Ratio:
    """The ratio of two samples of one environment; `comparisons` is the number m that share the baseline."""
    level = 1 - 0.05 / max(comparisons, 1)
    inert = sample.cuda is False
    if baseline is None:
        return _unknown("no default (F,F) with the same other settings in this environment", level, inert)
    both = [pair for pair in pairs_of(sample, baseline) if len(step_times(pair)) == 2]
    own, other = step_times(sample.finished), step_times(baseline.finished)
    if len(both) > 1 or (both and min(len(own), len(other)) == 1):
        logs = np.log([step_times(pair) for pair in both]) @ [1.0, -1.0]
        return paired_ratio(logs.tolist(), level, margin, inert)
    if not own or not other:
        return _unknown("no steady step time in both cells", level, inert)
    why = f"{'only one' if both else 'no'} round has both on the same GPU and host"
    return unpaired_ratio(np.log(own).tolist(), np.log(other).tolist(), level, margin, why, inert)


def self_ratio(sample: Sample, level: float) -> Ratio:
    """The baseline against itself: 1 by definition."""
    if not step_times(sample.finished):
        return replace(_unknown("no steady step time", level, sample.cuda is False), baseline=True)
    return Ratio(1.0, (1.0, 1.0), "inert" if sample.cuda is False else "equivalent", level, baseline=True)


def paired_ratio(log_ratios: Sequence[float], level: float, margin: float, inert: bool = False) -> Ratio:
    """The ratio from one log ratio a pair: exp of the mean and of its t interval."""
    interval = _exp(mean_interval(log_ratios, level))
    verdict = decide(interval, margin, inert)
    return Ratio(
        value=float(np.exp(np.mean(log_ratios))),
        ci95=interval,
        verdict=verdict,
        level=level,
        pairs=len(log_ratios),
        rounds=rounds_to_settle(log_ratios, level, margin) if verdict == "undecided" else None,
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


def rounds_to_settle(log_ratios: Sequence[float], level: float, margin: float) -> tuple[int | None, int | None] | None:
    """How many rounds in all would settle the ratio, if its mean stays, at both ends of the sd's 95 % interval.

    Settled is an interval that excludes 1 or lies inside the margin, whichever a wider interval can do.
    """
    spread = sd_interval(log_ratios)
    if spread is None:
        return None
    mean = abs(float(np.mean(log_ratios)))
    allowed = max(mean, float(np.log1p(margin)) - mean)
    rounds = np.arange(2, MOST_ROUNDS + 1)
    half_width = stats.t.ppf((1 + level) / 2, rounds - 1) / np.sqrt(rounds)
    low, high = (_first(rounds[half_width * sd < allowed], len(log_ratios) + 1) for sd in spread)
    return low, high


def _first(enough: np.ndarray, least: int) -> int | None:
    return max(int(enough[0]), least) if enough.size and least <= MOST_ROUNDS else None


def _exp(interval: Interval | None) -> Interval | None:
    return None if interval is None else (float(np.exp(interval[0])), float(np.exp(interval[1])))


def _unknown(why: str, level: float, inert: bool) -> Ratio:
    return Ratio(None, None, "inert" if inert else "undecided", level, why=why)
