"""Run-to-run variance: how far the trials of a cell end up from each other, and whose trials spread more."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from runner.analysis.figure import Interval, sample_sd, t_quantile
from runner.series import Series

# Below, not even a spread twice as large is told apart reliably: at 10 trials a side the interval of equal sds still
# reaches from a half to two.
LEAST_FOR_SPREAD = 20
# The work grows with the square of the number of trials, and the mean over the pairs of so many is known well.
MOST_COMPARED = 200


@dataclass(frozen=True)
class Pairwise:
    """The mean of a symmetric comparison over all pairs of trials: a U-statistic of degree 2.

    `ci95` is the leave-one-trial-out jackknife interval with n - 1 degrees of freedom: pairs that share a trial are
    not independent. It is None below three trials, and where all trials look alike, which tells nothing of the
    spread.
    """

    trials: int
    mean: float
    ci95: Interval | None


@dataclass(frozen=True)
class Spread:
    """The sd of one sample over another's; what cannot be computed is None, and `words` say why.

    `ci95` is the F interval at the level asked for, `p` that of Brown and Forsythe's test, `apart` whether both tell
    the two apart.
    """

    trials: int
    ratio: float | None
    ci95: Interval | None
    p: float | None
    apart: bool
    words: str


def disagreement(series: Sequence[Series]) -> Pairwise | None:
    """Churn: the share of the test set (0 to 1) on which two trials predict different classes, the mean over pairs.

    It counts the items that differ: published code has counted those that agree under this name. None below two
    trials and where predictions are values instead of classes. Source: Milani Fard et al., Launch and Iterate:
    Reducing Prediction Churn, NeurIPS 2016; over all pairs as in Summers and Dinneen, Nondeterminism and Instability
    in Neural Network Optimization, ICML 2021 ("pairwise disagree").
    """
    predictions = [one.predictions for one in _compared(series)]
    if len(predictions) < 2 or not _comparable(predictions) or not np.issubdtype(predictions[0].dtype, np.integer):
        return None
    return pairwise(squareform(pdist(np.stack(predictions), "hamming")), upper=1.0)


def weight_distance(series: Sequence[Series]) -> Pairwise | None:
    """The Euclidean distance of two trials' final weights as they are, the mean over pairs.

    Estimated from the sketches, with a relative standard error of about 1 %. It grows with the length of the weights:
    `unit_weight_distance` compares models of different size. None below two trials and where a sketch is not finite.
    Source: the L2 measure of Zhuang et al., Randomness in Neural Network Training, MLSys 2022.
    """
    return _distance([one.sketch for one in _compared(series)])


def unit_weight_distance(series: Sequence[Series]) -> Pairwise | None:
    """The same after the weights of each trial are scaled to unit length: 0 to 2, for comparison across models.

    A sketch is linear in the weights and its length estimates theirs, so that each is divided by its own length.
    None also where all weights of a trial are 0.
    """
    sketches = [one.sketch.astype(np.float64) for one in _compared(series)]
    lengths = [float(np.linalg.norm(sketch)) for sketch in sketches]
    if 0.0 in lengths:
        return None
    return _distance([sketch / length for sketch, length in zip(sketches, lengths, strict=True)])


def _distance(sketches: list[np.ndarray]) -> Pairwise | None:
    if len(sketches) < 2 or not _comparable(sketches):
        return None
    rows = np.stack(sketches)
    return pairwise(squareform(pdist(rows, "euclidean"))) if np.isfinite(rows).all() else None


def _compared(series: Sequence[Series]) -> Sequence[Series]:
    """All trials, or evenly spread ones where there are more than MOST_COMPARED."""
    return series[:: -(-len(series) // MOST_COMPARED) or 1]


def _comparable(arrays: list[np.ndarray]) -> bool:
    return arrays[0].size > 0 and len({array.shape for array in arrays}) == 1


def pairwise(distances: np.ndarray, upper: float = np.inf, lower: float = 0.0) -> Pairwise:
    """The mean over pairs of a symmetric (n, n) matrix with zero diagonal, n >= 2; values lie in `lower` to `upper`.

    Jackknife of a U-statistic: Arvesen, Annals of Mathematical Statistics 40 (1969), 2076-2100.
    """
    n, total = len(distances), distances.sum()
    mean = float(total / (n * (n - 1)))
    if n < 3:
        return Pairwise(n, mean, None)
    without = (total - 2 * distances.sum(axis=1)) / ((n - 1) * (n - 2))
    error = float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))
    if error <= 1e-12 * abs(mean):
        return Pairwise(n, mean, None)
    half_width = t_quantile(0.95, n - 1) * error
    return Pairwise(n, mean, (max(lower, mean - half_width), min(upper, mean + half_width)))


def compare_spread(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Spread:
    """Whether the values of one sample spread more than those of another, from LEAST_FOR_SPREAD trials on.

    The F interval of the ratio of two normal samples' sds gives the size. It takes heavy tails for a difference, so
    that the samples count as told apart only where Brown and Forsythe's test (Levene's about the median; Journal of
    the American Statistical Association 69 (1974), 364-367) finds it too.
    """
    trials, sds = min(len(first), len(second)), [sample_sd(one) if len(one) > 1 else 0.0 for one in (first, second)]
    if trials < LEAST_FOR_SPREAD:
        return Spread(trials, None, None, None, False, not_answered(trials))
    if 0.0 in sds:
        return Spread(trials, None, None, None, False, _without_spread(sds))
    ratio = sds[0] / sds[1]
    small, large = _f_quantiles(level, len(first) - 1, len(second) - 1)
    low, high = ratio / float(np.sqrt(large)), ratio / float(np.sqrt(small))
    p = float(stats.levene(first, second, center="median").pvalue)
    apart = not low <= 1 <= high and p < 1 - level
    said = "the sds are told apart" if apart else "the sds are not told apart"
    return Spread(trials, ratio, (low, high), p, apart, f"{said}: {ratio:.2f} [{low:.2f}, {high:.2f}]")


@cache
def _f_quantiles(level: float, first: int, second: int) -> Interval:
    """The quantiles that bound so much of the F distribution; kept, because a study asks for few and often."""
    small, large = stats.f.interval(level, first, second)
    return float(small), float(large)


def not_answered(trials: int) -> str:
    """What is said about a comparison of variances with too few trials."""
    return f"cannot be answered with {trials} trial{'' if trials == 1 else 's'} ({LEAST_FOR_SPREAD} needed)"


def _without_spread(sds: list[float]) -> str:
    if not any(sds):
        return "all values are equal on both sides"
    return f"all values of the {'first' if sds[0] == 0 else 'second'} are equal, those of the other are not"
