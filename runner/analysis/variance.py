"""Run-to-run variance: how far the trials of a cell end up from each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from runner.analysis.figure import Interval
from runner.series import Series


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


def disagreement(series: Sequence[Series]) -> Pairwise | None:
    """Churn: the share of the test set (0 to 1) on which two trials predict different classes.

    None below two trials and where predictions are values instead of classes. Source: Milani Fard et al., Launch and
    Iterate: Reducing Prediction Churn, NeurIPS 2016.
    """
    predictions = [one.predictions for one in series]
    if len(predictions) < 2 or not _comparable(predictions) or not np.issubdtype(predictions[0].dtype, np.integer):
        return None
    return pairwise(squareform(pdist(np.stack(predictions), "hamming")), upper=1.0)


def weight_distance(series: Sequence[Series]) -> Pairwise | None:
    """The Euclidean distance of two trials' final weights, estimated from their sketches; None below two trials."""
    sketches = [one.sketch for one in series]
    if len(sketches) < 2 or not _comparable(sketches):
        return None
    return pairwise(squareform(pdist(np.stack(sketches), "euclidean")))


def _comparable(arrays: list[np.ndarray]) -> bool:
    return arrays[0].size > 0 and len({array.shape for array in arrays}) == 1


def pairwise(distances: np.ndarray, upper: float = np.inf) -> Pairwise:
    """The mean over pairs of a symmetric (n, n) matrix with zero diagonal, n >= 2; values lie in 0 to `upper`.

    Jackknife of a U-statistic: Arvesen, Annals of Mathematical Statistics 40 (1969), 2076-2100.
    """
    n, total = len(distances), distances.sum()
    mean = float(total / (n * (n - 1)))
    if n < 3:
        return Pairwise(n, mean, None)
    without = (total - 2 * distances.sum(axis=1)) / ((n - 1) * (n - 2))
    error = float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))
    if error <= 1e-12 * mean:
        return Pairwise(n, mean, None)
    low, high = stats.t.interval(0.95, n - 1, loc=mean, scale=error)
    return Pairwise(n, mean, (max(0.0, float(low)), min(upper, float(high))))
