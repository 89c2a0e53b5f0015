"""How large the differences of one operation's results are: between captures, and between calls in one process."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from runner.captured import Captured
from runner.errors import StudyError
from runner.size import Size, size_of

ALONE = "one capture has no counterpart; the study's command with study=STUDY, or --repro FILE, captures again"


@dataclass(frozen=True)
class OperationSize:
    """What the captures of a cell tell of one operation.

    `between` is the difference between two captures (processes) whose inputs had the same bits, the largest in ulp
    where there are several; `repeated` that between two calls in one process. `unknown` says why `between` is None.
    """

    index: int
    name: str
    between: Size | None
    repeated: Size | None
    unknown: str | None

    @property
    def words(self) -> str:
        """Both in one sentence."""
        parts = [f"between processes {self.between.words if self.between else self.unknown}"]
        if self.repeated:
            parts.append(f"when repeated {self.repeated.words}")
        return "; ".join(parts)


def operation_sizes(captures: Sequence[Captured]) -> list[dict[str, Any]]:
    """For each operation that the captures of one cell kept: an OperationSize as a dict, with its "words"."""
    indices = sorted({index for capture in captures for index in capture.operations})
    sizes = [_operation_size(index, captures) for index in indices]
    return [asdict(size) | {"words": size.words} for size in sizes]


def _operation_size(index: int, captures: Sequence[Captured]) -> OperationSize:
    there = [capture for capture in captures if index in capture.operations]
    seen = [capture.operations[index] for capture in there]
    with_outputs = [capture for capture in there if capture.operations[index].outputs]
    pairs = [
        (one, other)
        for one, other in combinations(with_outputs, 2)
        if one.operations[index].inputs == other.operations[index].inputs
        and one.operations[index].name == other.operations[index].name
    ]
    repeated = _largest([one.repeated for one in seen if one.repeated and one.repeated.differing])
    try:
        between = [size_of(one.outputs(index), other.outputs(index)) for one, other in pairs]
    except StudyError as error:
        return OperationSize(index, seen[0].name, None, repeated, f"not known: {error}")
    unknown = None if between else _unknown(len(with_outputs), [reason for one in seen for reason in one.left_out])
    return OperationSize(index, seen[0].name, _largest(between), repeated, unknown)


def _unknown(captures: int, left_out: list[str]) -> str:
    if captures > 1:
        return "not known: the captures' inputs differed"
    reasons = [reason for reason in left_out if "saved" in reason]
    return f"not known: {reasons[0] if reasons else ALONE}"


def _largest(sizes: Sequence[Size]) -> Size | None:
    return max(sizes, key=lambda size: (size.max_ulp or 0, size.differing), default=None)
