"""How far the operations of cells lie from float64: repeating the same bits and being accurate are two things."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from runner.captured import Captured
from runner.jsonfile import canonical
from runner.trace import Trace


@dataclass(frozen=True)
class CellCaptures:
    """A cell's label and settings, the trace by whose indices its captures count, and these."""

    label: str
    config: dict[str, Any]
    trace: Trace
    captures: Sequence[Captured]


def question(config: dict[str, Any]) -> str:
    """What two cells must share for their operations to be compared: model, data and which steps are traced."""
    return canonical([config.get(name) for name in ("model", "dataset", "probe", "phase")])


def counterparts(trace: Trace, indices: Collection[int], other: Trace) -> list[int]:
    """The indices in another trace of the same operations, which stand at the same place the same time.

    Those that have none there are left out: other numbers mean nothing in another trace.
    """
    names = {trace.operations[index].name for index in indices}
    wanted = {key for index, key in _keys(trace, names) if index in indices}
    return [index for index, key in _keys(other, names) if key in wanted]


def _keys(trace: Trace, names: Collection[str]) -> Iterator[tuple[int, Hashable]]:
    """Index and place of each operation of these names, with how often one stood at that place before."""
    counts: Counter[Hashable] = Counter()
    for operation in trace.operations:
        if operation.name in names:
            yield operation.index, (operation.place, counts[operation.place])
            counts[operation.place] += 1


def accuracies(cells: Sequence[CellCaptures]) -> list[dict[str, Any]]:
    """For each group of cells with one question: the error against float64 over the operations that all of them kept.

    {"operations": their number, "errors": {label: [one a capture]}, "closest": label or None, "sentence"}; an error is
    the root mean square of the operations' relative ones. None is the closest where the difference is no larger than
    the spread of the captures of one cell.
    """
    groups: dict[str, list[CellCaptures]] = {}
    for cell in cells:
        groups.setdefault(question(cell.config), []).append(cell)
    found = [_accuracy(group) for group in groups.values()]
    return [one for one in found if one is not None]


def _accuracy(cells: Sequence[CellCaptures]) -> dict[str, Any] | None:
    errors = {cell.label: [_errors(cell.trace, capture) for capture in cell.captures] for cell in cells}
    shared = set.intersection(*(set().union(*captures) for captures in errors.values()))
    if not shared:
        return None
    complete = {
        label: [_mean([capture[key] for key in shared]) for capture in captures if shared <= capture.keys()]
        for label, captures in errors.items()
    }
    if not all(complete.values()):
        return None
    closest = _closest(complete)
    return {
        "operations": len(shared),
        "errors": complete,
        "closest": closest,
        "sentence": _sentence(len(shared), complete, closest),
    }


def _errors(trace: Trace, capture: Captured) -> dict[Hashable, float]:
    """The relative error of each operation that a capture has one of, by the operation's place."""
    kept = {index: one.relative_error for index, one in capture.operations.items() if one.relative_error is not None}
    return {
        key: kept[index]
        for index, key in _keys(trace, {capture.operations[index].name for index in kept})
        if index in kept
    }


def _mean(errors: Sequence[float]) -> float:
    return sqrt(sum(error**2 for error in errors) / len(errors))


def _closest(errors: dict[str, list[float]]) -> str | None:
    """The cell whose captures all have a smaller error than any of the others, by more than captures spread."""
    if len(errors) < 2:
        return None
    spread = max(max(captures) - min(captures) for captures in errors.values())
    first, second = sorted(errors, key=lambda label: max(errors[label]))[:2]
    return first if min(errors[second]) - max(errors[first]) > spread else None


def _sentence(operations: int, errors: dict[str, list[float]], closest: str | None) -> str:
    each = ", ".join(f"{_mean(captures):.2g} ({label})" for label, captures in errors.items())
    over = f"{operations} operation{'' if operations == 1 else 's'}"
    said = f"relative error against float64 over {over}: {each}"
    if len(errors) < 2:
        return said
    verdict = f"{closest} is closer" if closest else "no difference beyond the spread of the captures"
    return f"{said}: {verdict}; to repeat is not to be accurate"
