"""Durations as people write and read them."""

import re

from runner.errors import ConfigError

UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}


def seconds_of(budget: str) -> float:
    """The seconds of 90s, 10min or 2h. Raises ConfigError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h)", budget)
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if seconds <= 0:
        raise ConfigError("budget", budget, "give a number above 0 with s, min or h: 90s, 10min, 2h")
    return seconds


def rough(seconds: float) -> str:
    """An estimated duration, in two or three digits: 45 s, 12 min, 3.5 h."""
    if seconds < 99.5:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


def exact(seconds: float) -> str:
    """A duration in its two largest units: 0.84 s, 37.3 s, 20 min 3 s, 2 h 46 min, 3 d 4 h."""
    if seconds < 59.95:
        return f"{seconds:.{1 if seconds >= 10 else 2}f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"
