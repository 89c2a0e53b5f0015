"""How far the trials of one cell are from those of another: what a change of its settings does to the predictions."""

from collections.abc import Sequence

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist

from runner.analysis.figure import Interval
from runner.analysis.variance import Pairwise
from runner.series import Series


def disagreement_between(first: Sequence[Series], second: Sequence[Series]) -> Pairwise | None:
    """The share of the test set (0 to 1) on which a trial of either cell predict different classes, over all pairs.

    `trials` are those of the smaller cell. None without a trial on either side, and where predictions are values or
    are not of one length.
    """
    own, other = ([one.predictions for one in side] for side in (first, second))
    every = [*own, *other]
    if not own or not other or len({one.shape for one in every}) > 1 or every[0].size == 0:
        return None
    if not all(np.issubdtype(one.dtype, np.integer) for one in every):
        return None
    return two_samples(cdist(np.stack(own), np.stack(other), "hamming"))


def two_samples(distances: np.ndarray) -> Pairwise:
    """The mean of (n, m) comparisons of the trials of two cells, with values of 0 to 1.

    A U-statistic of two samples: its variance is that of the rows' means over n and of the columns' over m; degrees of
    freedom as Welch has them. No interval with a single trial on a side, or where all comparisons are alike, unless
    they are all 0. Source: Sen, On Some Convergence Properties of U-Statistics, Calcutta Statistical Association
    Bulletin 10 (1960), 1-18.
    """
    mean, trials = float(distances.mean()), min(distances.shape)
    if not distances.any():
        return Pairwise(trials, 0.0, (0.0, 0.0))
    return Pairwise(trials, mean, _interval(distances, mean))


def _interval(distances: np.ndarray, mean: float) -> Interval | None:
    if min(distances.shape) < 2:
        return None
    parts = [distances.mean(axis=axis) for axis in (1, 0)]
    errors = [float(np.var(part, ddof=1)) / len(part) for part in parts]
    total = sum(errors)
    if total <= 1e-24:
        return None
    freedom = total**2 / sum(one**2 / (len(part) - 1) for one, part in zip(errors, parts, strict=True))
    low, high = stats.t.interval(0.95, freedom, loc=mean, scale=float(np.sqrt(total)))
    return max(0.0, float(low)), min(1.0, float(high))
