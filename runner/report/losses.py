"""The losses of every trial, and how far the trials of a cell lie apart from the step at which they part."""

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from runner.report.canvas import Frame, Label, Picture, colour_of, key_of, logarithmic
from runner.report.trainings import Group, Trainings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 200  # of a line
MOST_LINES = 120  # in all: more over each other show nothing
HEIGHT = 1.9  # inches
WIDE = 50  # so many times the median: losses that reach so far get a logarithmic axis


def losses(groups: list[Group], frame: Frame) -> Picture | None:
    """Above the losses, below for cells that part the range over trials on a logarithmic axis."""
    groups = [group for group in groups if any(one.losses for one in group.cells)]
    views = [(group, parting) for group in groups for parting in (False, True) if not parting or _parts(group)]
    if not views:
        return None
    few = max(2, MOST_LINES // sum(len(group.cells) for group in groups))
    told = f"A line a trial{_told(groups, few)}. Triangle: trials of a cell part at this step. Cross: not finite."
    picture, axes = frame.picture("Loss of each step", told, [HEIGHT] * len(views))
    for (group, parting), one in zip(views, axes, strict=True):
        labels = _spreads(one, group) if parting else _curves(one, group, few)
        one.set(xlabel="step", ylabel="largest \N{MINUS SIGN} smallest loss" if parting else "loss")
        frame.title(one, group.settings)
        frame.beside(one, HEIGHT, labels)
    return picture


def _told(groups: list[Group], most: int) -> str:
    trials = max(len(one.losses) for group in groups for one in group.cells)
    width = max(_width(one) for group in groups for one in group.cells)
    few = f", the first {most} of each cell" if trials > most else ""
    return f"{few}, means over {width} steps" if width > 1 else few


def _width(trainings: Trainings) -> int:
    """How many steps make a point of a line."""
    return ceil(max((len(loss) for loss in trainings.losses), default=0) / MOST_POINTS)


def _parts(group: Group) -> bool:
    return any(_parted(one) for one in group.cells)


def _parted(trainings: Trainings) -> bool:
    return bool((trainings.spread > 0).any())


def _curves(axes: "Axes", group: Group, most: int) -> list[Label]:
    labels, finite = [], []
    for one in group.cells:
        colour = colour_of(one.cell)
        for loss in one.losses[:most]:
            steps, means = _blocks(loss, _width(one))
            axes.plot(steps, means, color=colour, linewidth=0.8, alpha=0.6)
            finite.append(means[np.isfinite(means)])
            broken = np.flatnonzero(~np.isfinite(loss))
            if broken.size:
                axes.plot(broken[0] + 1, 0.04, "x", color=colour, transform=axes.get_xaxis_transform(), clip_on=False)
        labels += _labels(one, axes)
    drawn = np.concatenate(finite)
    if drawn.size and drawn.min() > 0 and drawn.max() > WIDE * np.median(drawn):
        logarithmic(axes)
    return labels


def _labels(trainings: Trainings, axes: "Axes") -> list[Label]:
    """The name of a cell at the end of its first line; where its trials part there is a triangle at the top."""
    first, colour = trainings.cell["reproducibility"]["first_loss_step"], colour_of(trainings.cell)
    if first:
        axes.plot(first, 1.0, "v", color=colour, markersize=5, transform=axes.get_xaxis_transform(), clip_on=False)
    return _label(trainings, next((loss for loss in trainings.losses), np.empty(0)))


def _label(trainings: Trainings, line: np.ndarray) -> list[Label]:
    there = line[np.isfinite(line)]
    cell = trainings.cell
    return [Label(float(there[-1]), key_of(cell), cell["label"], colour_of(cell))] if there.size else []


def _spreads(axes: "Axes", group: Group) -> list[Label]:
    """A line for each cell whose trials part; a step in which they meet again is a gap."""
    labels = []
    for one in filter(_parted, group.cells):
        steps, most = _blocks(np.where(one.spread > 0, one.spread, np.nan), _width(one))
        axes.plot(steps, most, color=colour_of(one.cell), linewidth=1.0)
        labels += _label(one, most)
    low, high = axes.dataLim.intervaly
    logarithmic(axes, each=(1,) if high > 100 * low else (1, 2, 5))
    axes.set_ylim(low / 2, high * 2)
    return labels


def _blocks(values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The middle of each block of so many steps, from 1, and the mean of its numbers; NaN where any is not finite."""
    count = ceil(len(values) / width)
    padded = np.concatenate([values, np.repeat(values[-1:], count * width - len(values))])
    return 1 + np.arange(count) * width + (width - 1) / 2, padded.reshape(count, width).mean(axis=1)
