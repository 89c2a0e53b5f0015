"""What two trials would say together, and how alike they are: from the logits of each trial's last evaluation.

Also how far the accuracy would spread if errors were independent. Over all pairs of trials, with the mean of the two
logits as the ensemble's: Summers and Dinneen, Nondeterminism and Instability in Neural Network Optimization, ICML 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from runner.analysis.variance import Pairwise, pairwise
from runner.logits import Logits

# The work grows with the square of the number of trials: 4,950 pairs of 10,000 items take some seconds.
MOST_COMPARED = 100


@dataclass(frozen=True)
class Ensemble:
    """The means over pairs; all None where `why` says why.

    gain: of the accuracy (0 to 1) by the ensemble of two beside either of them; pearson, spearman: the correlation of
    two trials' logits, all items and classes in one row; independent_sd: of the accuracy, if errors were independent.
    """

    gain: Pairwise | None = None
    pearson: Pairwise | None = None
    spearman: Pairwise | None = None
    independent_sd: Pairwise | None = None
    why: str | None = None

    def summary(self) -> dict[str, Any]:
        """As summary.json has it: each mean with its interval by name, and the number of trials compared."""
        found = {name: getattr(self, name) for name in ("gain", "pearson", "spearman", "independent_sd")}
        means = {name: one.mean if one else None for name, one in found.items()}
        intervals = {f"{name}_ci95": one.ci95 if one else None for name, one in found.items()}
        return {"trials": self.gain.trials if self.gain else 0, "why": self.why, **means, **intervals}


def ensemble(kept: Sequence[Logits | None]) -> Ensemble:
    """Compare the logits of a cell's finished trials; None stands for a trial that kept none."""
    logits = [one for one in kept if one is not None]
    if len(logits) < len(kept):
        return Ensemble(why="not every trial kept its logits: they may take 4 MiB at most")
    if len(logits) < 2:
        return Ensemble(why="two trials are needed")
    logits = logits[:: -(-len(logits) // MOST_COMPARED)]
    if not all(_same_test(logits[0], one) for one in logits):
        return Ensemble(why="the trials were not tested on the same items")
    rows = np.stack([one.values.ravel() for one in logits])
    ranks = stats.rankdata(rows, axis=1)
    return Ensemble(ensemble_gain(logits), correlation(rows), correlation(ranks), independent_sd(logits))


def _same_test(one: Logits, other: Logits) -> bool:
    return one.values.shape == other.values.shape and bool((one.targets == other.targets).all())


def ensemble_gain(logits: Sequence[Logits]) -> Pairwise:
    """The accuracy (0 to 1) of the mean of two trials' logits less that of either, the mean over pairs and members."""
    n, targets = len(logits), logits[0].targets
    own = [_accuracy(one.values, targets) for one in logits]
    gains = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            both = _accuracy(logits[i].values + logits[j].values, targets)
            gains[i, j] = gains[j, i] = both - (own[i] + own[j]) / 2
    return pairwise(gains, lower=-1.0, upper=1.0)


def independent_sd(logits: Sequence[Logits]) -> Pairwise:
    """The sd of the accuracy (0 to 1) that n test items would give if each trial erred on each independently.

    sqrt(sum over items of p (1 - p)) / n, where p is an item's error rate over trials: the sd that a training without
    any real difference between its runs has on a test set of that size. Source: Jordan, On the Variance of Neural
    Network Training with respect to Test Sets and Distributions, ICLR 2024 (arXiv 2304.01910). The rates of R trials
    give p (1 - p) too small by (R - 1) / R; half the share of pairs of trials of which one errs and the other does not
    is without that bias, and its interval over pairs is carried over.
    """
    rights = np.stack([one.values.argmax(axis=1) == one.targets for one in logits])
    apart = pairwise(squareform(pdist(rights, "hamming")), upper=1.0)
    sds = [float(np.sqrt(share / (2 * rights.shape[1]))) for share in (apart.mean, *(apart.ci95 or ()))]
    return Pairwise(apart.trials, sds[0], (sds[1], sds[2]) if apart.ci95 else None)


def _accuracy(logits: np.ndarray, targets: np.ndarray) -> float:
    return float((logits.argmax(axis=1) == targets).mean())


def correlation(rows: np.ndarray) -> Pairwise | None:
    """Pearson's correlation of two rows of (n, m), the mean over pairs of n; exactly 1 for equal rows.

    None where all numbers of a row are equal.
    """
    if (np.ptp(rows, axis=1) == 0).any():
        return None
    if (rows == rows[0]).all():
        return Pairwise(len(rows), 1.0, None)
    found = np.clip(np.corrcoef(rows), -1, 1)
    np.fill_diagonal(found, 0)
    return pairwise(found, lower=-1.0, upper=1.0)
