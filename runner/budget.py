"""A budget: the time that a study may take, and the rounds that fit into it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from runner.study import Study

# Rounds differ, and the report at the end takes its time too.
RESERVE = 1.05


@dataclass
class Budget:
    """Until when (by `now`, in seconds) all rounds should be done, and how many the study has then at most.

    `looked` are the numbers of rounds at which the study had been looked at before. `round_s` is what a round takes, as
    far as it is known by now.
    """

    given: str
    end_s: float
    most: int
    looked: list[int]
    round_s: float
    now: Callable[[], float] = time.monotonic

    @property
    def room(self) -> int:
        """How many further rounds fit."""
        return max(0, int((self.end_s - self.now()) / (RESERVE * self.round_s)))

    def fits(self) -> bool:
        """Whether a further round fits."""
        return self.room >= 1

    def lengthen(self, study: Study) -> bool:
        """Make the study a round longer, if one may be added and fits; returns whether it was done.

        One at a time: so study.json never asks for a round that there was no time for, however this process ends.
        """
        rounds = int(study.asked()["rounds"])
        if rounds >= self.most or not self.fits():
            return False
        study.lengthen(rounds + 1, self.looked)
        return True
