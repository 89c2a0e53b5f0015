"""What a study measured of a recipe's row, and what quantities are measured with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.analysis.figure import Interval
from runner.analysis.looks import Looks
from runner.analysis.sample import Sample
from runner.series import Series


@dataclass(frozen=True)
class Measured:
    """A figure in the unit of its quantity, or words, over so many trials.

    `ci95` is an interval of at least 95 % (a ratio's has the level of its look); None where there is none.
    `note` says more about a word: what it was drawn from.
    `bootstrap_se` is the standard error of an sd by resampling, shown beside it as papers do; no verdict hangs on it.
    """

    value: float | str
    ci95: Interval | None
    trials: int
    bootstrap_se: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Measurement:
    """A sample with what summary.json says of its cell, and what comparisons depend on.

    `series` reads those of its finished trials: only what compares predictions needs them.
    """

    sample: Sample
    cell: dict[str, Any]
    margin: float
    looks: Looks
    series: Callable[[], Sequence[Series]] = list


Answer = Measured | str  # the figure, or why there is none
