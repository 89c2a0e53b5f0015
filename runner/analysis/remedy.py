"""A remedy: what is known to remove a difference of some kind, how that is known, and for which cells it holds."""

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


def flags_are(deterministic: bool, benchmark: bool | None = None) -> Callable[[Flat], bool]:
    """Whether a cell's convolutions are asked to be deterministic, by flag or strict mode, and benchmark is so."""

    def holds(flat: Flat) -> bool:
        asked = bool(flat.get("cudnn.deterministic") or flat.get("determinism.algorithms"))
        return asked == deterministic and benchmark in (None, flat.get("cudnn.benchmark"))

    return holds


def seeds_are_fixed(flat: Flat) -> bool:
    """Whether no seed varies by design, so that something else does."""
    return not flat.get("seeds.vary")


def attached(flat: Flat) -> bool:
    """Whether the cell is a script that is attached to, whose seeds are its own."""
    return flat.get("phase") == "attach"
