"""A figure over trials: mean, sample standard deviation and their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

Interval = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """One figure over the trials of a cell, in the unit of its values; what cannot be computed is None.

    `n` counts the trials that have a value; `sd` is the sample standard deviation (n - 1); `ci95` is Student's
    interval of the mean, `sd_ci95` the chi-square interval of the standard deviation.
    """

    n: int
    mean: float | None = None
    sd: float | None = None
    ci95: Interval | None = None
    sd_ci95: Interval | None = None
    min: float | None = None
    max: float | None = None

    @classmethod
    def of(cls, values: Sequence[float | None], lower: float = -np.inf) -> "Figure":
        """The figure of one value a trial. A missing value leaves only `n`: a mean over the rest would be selected.

        No value can be less than `lower`, and the mean's interval ends there.
        """
        known = [float(value) for value in values if value is not None]
        if not known or len(known) < len(values):
            return cls(n=len(known))
        return cls(
            n=len(known),
            mean=float(np.mean(known)),
            sd=sample_sd(known) if len(known) > 1 else None,
            ci95=mean_interval(known, lower=lower),
            sd_ci95=sd_interval(known),
            min=min(known),
            max=max(known),
        )


def sample_sd(values: Sequence[float]) -> float:
    """The sample standard deviation (n - 1) of at least two values, exactly 0 for equal ones."""
    found = np.asarray(values)
    return float(np.std(found, ddof=1)) if np.ptp(found) else 0.0


def mean_interval(values: Sequence[float], level: float = 0.95, lower: float = -np.inf) -> Interval | None:
    """Student's t interval of a mean, None below two values. A mean that cannot be less than `lower` ends there."""
    if len(values) < 2:
        return None
    mean, error = float(np.mean(values)), sample_sd(values) / float(np.sqrt(len(values)))
    if error == 0:
        return mean, mean
    half_width = t_quantile(level, len(values) - 1) * error
    return max(lower, mean - half_width), mean + half_width


def sd_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """The chi-square interval of a standard deviation of normal values, None below two values."""
    if len(values) < 2:
        return None
    freedom, sd = len(values) - 1, sample_sd(values)
    small, large = _chi2(level, freedom)
    return sd * float(np.sqrt(freedom / large)), sd * float(np.sqrt(freedom / small))


@cache
def t_quantile(level: float, freedom: int) -> float:
    """The quantile that bounds so much of Student's t on both sides; kept, because a study asks for few and often."""
    return float(stats.t.interval(level, freedom)[1])


@cache
def _chi2(level: float, freedom: int) -> Interval:
    small, large = stats.chi2.interval(level, freedom)
    return float(small), float(large)


def welch_interval(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Interval | None:
    """Welch's interval of mean(first) - mean(second), unequal variances; None below two values on either side."""
    if min(len(first), len(second)) < 2:
        return None
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        difference = float(first[0] - second[0])
        return difference, difference
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(level)
    return float(interval.low), float(interval.high)
