"""Which trials ended with bitwise equal weights: a square of all pairs, within a cell and between cells."""

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from runner.report.canvas import BETWEEN, LEFT, PAGE_RIGHT, PAGE_WIDTH, Frame, Label, Picture, colour_of, key_of
from runner.report.trainings import Group, Trainings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TRIALS = 80  # of all cells of a square: smaller fields cannot be seen
SIDE = PAGE_WIDTH - LEFT - PAGE_RIGHT  # inches


def equality(groups: list[Group], frame: Frame) -> Picture | None:
    """A square for each group in which two trials finished."""
    groups = [group for group in groups if sum(len(one.digests) for one in group.cells) > 1]
    if not groups:
        return None
    most = max(len(one.digests) for group in groups for one in group.cells)
    shown = min(_most(group) for group in groups)
    few = f" The first {shown} trials of each cell." if most > shown else ""
    subject = groups[0].cells[0].cell["reproducibility"]["subject"]
    told = f"A filled field: the two trials' {subject} are bitwise equal; grey where their modes differ.{few}"
    picture, axes = frame.picture(f"Equal {subject}, trial by trial", told, [SIDE] * len(groups))
    for group, one in zip(groups, axes, strict=True):
        frame.beside(one, SIDE, _square(one, group))
        frame.title(one, group.settings)
    return picture


def _most(group: Group) -> int:
    return MOST_TRIALS // len(group.cells)


def _square(axes: "Axes", group: Group) -> list[Label]:
    """Fill the fields of equal pairs: trials stand in the order of their cells, equal ones side by side."""
    from matplotlib.patches import Rectangle

    labels, runs, end = [], [], 0
    for one in group.cells:
        start, end = end, end
        for digest, count in Counter(one.digests[: _most(group)]).items():
            runs.append((one, digest, end, count))
            end += count
        if end > start:
            labels.append(_label(one, start, end))
            for line in (axes.axhline, axes.axvline):
                line(end, color=BETWEEN, linewidth=0.6)
    for _, equal in groupby(sorted(runs, key=lambda run: run[1]), key=lambda run: run[1]):
        there = list(equal)
        for own, _, row, height in there:
            for other, _, column, width in there:
                colour = colour_of(own.cell) if own is other else BETWEEN
                axes.add_patch(Rectangle((column, row), width, height, facecolor=colour, linewidth=0))
    axes.set(xlim=(0, end), ylim=(end, 0), xticks=[], xlabel="trials, equal ones side by side")
    axes.set_yticks([])
    axes.grid(visible=False)
    return labels


def _label(trainings: Trainings, start: int, end: int) -> Label:
    return Label((start + end) / 2, key_of(trainings.cell), trainings.cell["label"], colour_of(trainings.cell))
