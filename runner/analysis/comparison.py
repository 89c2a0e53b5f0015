"""A comparison of two sides, cell by cell: what is bitwise the same, where cells part, and why most likely."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from runner.analysis.causes import Cause, causes, changes_of
from runner.analysis.command import deeper
from runner.analysis.kernel_choice import lines
from runner.analysis.kernels import kernel_changes
from runner.analysis.match import match
from runner.analysis.parting import Parting, across, within
from runner.analysis.ratio import Ratio, unpaired_ratio
from runner.analysis.side import Side
from runner.analysis.traces import compare
from runner.certificate import Facts
from runner.plan import USUAL
from runner.trace import Trace

Relation = Literal["same", "differs", "unsteady"]
SAME = Parting(0, False, None, None, None, None, False)  # nothing parts two cells of the same bits
MOST_TRACED = 20  # a trace of the operations of more steps takes long


@dataclass(frozen=True)
class Pair:
    """Two cells that stand for each other: `before` of the first side, `after` of the second.

    They are "unsteady" where they part no earlier than the trials of one side do among themselves, and no side was seen
    to repeat: then nothing need have changed. `unsteady_sides` are the indices of the sides that do not repeat,
    apart from ending after other numbers of steps.
    `causes` are the likeliest first; of cells that are the same they are what changed without effect. `ratio` is that
    of step times, after over before. `kernels` tells which operations ran other kernels, `operation` the first that
    gave other bits, None where not both sides have a trace; `deeper` is the command that makes one.
    """

    before: Facts
    after: Facts
    relation: Relation
    parted: Parting
    unsteady_sides: tuple[int, ...]
    causes: list[Cause]
    ratio: Ratio | None
    kernels: list[str]
    operation: str | None
    deeper: str

    @property
    def label(self) -> str:
        """What the cell is called: as on the first side."""
        return self.before.label


@dataclass(frozen=True)
class Comparison:
    """Two sides cell by cell. `alone` and `ambiguous` are the labels of cells without a pair, by side."""

    sides: tuple[Side, Side]
    pairs: list[Pair]
    alone: tuple[list[str], list[str]]
    ambiguous: tuple[list[str], list[str]]

    @property
    def same(self) -> bool:
        """Whether every cell has its counterpart, with the same bits, and nothing of either side is lost."""
        whole = not any(side.lost for side in self.sides)
        return whole and len(self.of("same")) == max(len(side.cells) for side in self.sides) > 0

    def of(self, relation: Relation) -> list[Pair]:
        """The pairs with this relation."""
        return [pair for pair in self.pairs if pair.relation == relation]


def compare_sides(first: Side, second: Side) -> Comparison:
    """Compare two sides."""
    found = match(first.cells, second.cells)
    return Comparison(
        sides=(first, second),
        pairs=[_pair(before, after, first, second, len(found.pairs)) for before, after in found.pairs],
        alone=(_labels(found.alone[0]), _labels(found.alone[1])),
        ambiguous=(_labels(found.ambiguous[0]), _labels(found.ambiguous[1])),
    )


def _labels(cells: list[Facts]) -> list[str]:
    return [one.label for one in cells]


def _pair(before: Facts, after: Facts, first: Side, second: Side, comparisons: int) -> Pair:
    parted, inside = across(before.bits, after.bits), [within(one.bits) for one in (before, after)]
    unsteady = tuple(index for index, one in enumerate(inside) if one.first is not None and not one.by_end)
    changes = changes_of(before, after, (first.version, second.version))
    own_data = "_target_" in after.config.get("dataset", {})
    relation = _relation(parted, inside, (before, after))
    return Pair(
        before=before,
        after=after,
        relation=relation,
        parted=parted,
        unsteady_sides=unsteady,
        causes=causes(changes, SAME if relation == "same" else parted, own_data),
        ratio=_ratio(before, after, comparisons),
        kernels=_kernels(first, before, second, after),
        operation=_operation(first.traces.get(before.label), second.traces.get(after.label), parted),
        deeper=deeper(first.command, before.config, min(max(_traced(parted), 2), MOST_TRACED)),
    )


def _relation(parted: Parting, inside: list[Parting], cells: tuple[Facts, Facts]) -> Relation:
    if parted.first is None or _same_bits(*cells):
        return "same"
    steady = [one.first is None and cell.processes > 1 for one, cell in zip(inside, cells, strict=True)]
    own = min((one.first for one in inside if one.first is not None), default=None)
    return "differs" if own is None or parted.first < own or any(steady) else "unsteady"


def _same_bits(before: Facts, after: Facts) -> bool:
    """Whether both sides have the same different trainings: a copy of a study whose cell does not repeat."""
    return len(before.bits) == len(after.bits) and all(one in after.bits for one in before.bits)


def _traced(parted: Parting) -> int:
    """The step up to which operations have to be traced to see the first difference."""
    steps = (parted.data_step, parted.loss_step, parted.differ_after)
    return min((step for step in steps if step is not None), default=parted.steps)


def _ratio(before: Facts, after: Facts, comparisons: int) -> Ratio | None:
    if not before.step_ms or not after.step_ms:
        return None
    level, logs = 1 - 0.05 / comparisons, [np.log(one.step_ms).tolist() for one in (after, before)]
    return unpaired_ratio(logs[0], logs[1], level, USUAL.margin, "two studies have no pairs")


def _kernels(first: Side, before: Facts, second: Side, after: Facts) -> list[str]:
    here, there = first.kernels.get(before.label), second.kernels.get(after.label)
    return lines(kernel_changes(here, there)) if here and there else []


def _operation(before: Trace | None, after: Trace | None, parted: Parting) -> str | None:
    """The first thing in which the traces of two cells part; None without two traces of one kind."""
    if before is None or after is None or before.level != after.level:
        return None
    traces = [replace(trace, cell="", number=number) for number, trace in enumerate((before, after))]
    found = compare(traces, not parted.initial, parted.data_step).findings
    return found[0].words if found else f"none of the first {min(before.steps, after.steps)} steps"
