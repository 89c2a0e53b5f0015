"""Looks: how the looks at a study that grows share the 5 % of wrong claims that are allowed over all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

ERROR = 0.05
# The first look that may decide has a third; from each of these numbers of rounds on there is a third more. Planned are
# looks at 5, 10 and 20 rounds.
MORE_FROM = (10, 20)
MOST_ROUNDS = 1000
ROUNDS = np.arange(2, MOST_ROUNDS + 1)


@dataclass(frozen=True)
class Looks:
    """The numbers of rounds at which a study was looked at, rising; the last is the look that is being taken.

    The claims of all looks together are wrong in at most 5 % of studies, since the looks' shares add up to one at most
    and an interval that covers the truth makes no wrong claim (Bonferroni's inequality, over looks and comparisons). It
    holds for numbers of rounds that were settled beforehand, not for ones chosen by what was seen.
    """

    at: tuple[int, ...]

    @classmethod
    def of(cls, rounds: Iterable[int]) -> "Looks":
        """The looks at these numbers of rounds; a look again at the same number is the same look."""
        return cls(tuple(sorted(set(rounds))))

    @property
    def share(self) -> float:
        """The share of the 5 % that this look has: 0 to 1."""
        return float(_due(self.at[-1])) - _taken(self.at[:-1])

    @property
    def over(self) -> bool:
        """Whether no further look at this study can have a share."""
        return bool(_due(self.at[-1]) == 1)

    @property
    def counting(self) -> "Looks":
        """The looks up to the one whose ratios count: this one, or the last before it that had a share.

        Its rounds alone make its ratios, so that rounds added since neither wipe out its claims nor make new ones.
        """
        return self if self.share else Looks(self.at[:-1]).counting

    @property
    def next_at(self) -> int | None:
        """The next planned number of rounds, None where only a new study can have a further look."""
        return next((rounds for rounds in MORE_FROM if rounds > self.at[-1]), None)

    def level(self, comparisons: int) -> float:
        """The level of each interval of this look, where so many comparisons share a baseline: 1 - share * 5 % / m."""
        return 1 - ERROR * self.share / max(comparisons, 1)

    def next_levels(self, comparisons: int) -> np.ndarray:
        """The level that the next look would have at each of ROUNDS, 1 where it has no share.

        After a look at 20 or more rounds nothing is left: these are the levels of a new study then.
        """
        taken = 0.0 if self.over else _taken(self.at)
        ahead = self.over | (self.at[-1] < ROUNDS)
        return 1 - ERROR * np.where(ahead, _due(ROUNDS) - taken, 0.0) / max(comparisons, 1)


def _due(rounds: Any) -> Any:
    """What all looks up to so many rounds may have taken together; rounds one by one or as an array."""
    return (1 + np.searchsorted(MORE_FROM, rounds, side="right")) / (1 + len(MORE_FROM))


def _taken(at: tuple[int, ...]) -> float:
    """What these looks took; one at a single round has no interval, and so took nothing."""
    return max((float(_due(rounds)) for rounds in at if rounds > 1), default=0.0)
