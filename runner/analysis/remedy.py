"""A remedy: what is known to remove a difference of some kind, and how that is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from runner.analysis.finding import Repeats, Rung

Flat = dict[str, Any]  # a cell's settings with dotted keys


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """It holds for findings of `rung` whose operation's name matches, on `device` if given.

    `names` match the whole name without "aten." and overload. Where repeating showed `not_if` the line does not hold;
    `when` looks at the cell's settings. `change` is an override of the command line, None where no setting does it.
    """

    rung: Rung | Literal["start", "data"] = "operation"
    device: Literal["cuda", "cpu"] | None = "cuda"
    names: str = ".*"
    not_if: Repeats | None = None
    when: Callable[[Flat], bool] = lambda flat: True
    words: str
    change: str | None = None
    source: str
