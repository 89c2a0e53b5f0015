"""Numbers for people: as many digits as they are worth."""

import math
from collections.abc import Sequence

NONE = "\u2013"


def number(value: float | None) -> str:
    """About three significant digits, never in powers of ten: 0.803, 35.7, 1230."""
    if value is None or not math.isfinite(value):
        return NONE
    return _fixed(value, 2 - _magnitude(value))


def number_and_sd(mean: float | None, sd: float | None, interval: Sequence[float] | None) -> str:
    """A mean with its sd and interval, all to the place of the sd's second digit: 35.71 (sd 0.21) [35.45, 35.97]."""
    if mean is None or sd is None or not math.isfinite(mean + sd):
        return number(mean)
    if sd == 0:
        return f"{number(mean)} (sd 0)"
    places = 1 - _magnitude(sd)
    text = f"{_fixed(mean, places)} (sd {_fixed(sd, places)})"
    if interval is None:
        return text
    return f"{text} [{_fixed(interval[0], places)}, {_fixed(interval[1], places)}]"


def memory(size: int | None) -> str:
    """Bytes in GB or MB (powers of ten)."""
    if size is None:
        return NONE
    return f"{number(size / 1e9)} GB" if size >= 1e9 else f"{number(size / 1e6)} MB"


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _fixed(value: float, places: int) -> str:
    return f"{value:.{min(max(places, 0), 9)}f}"
