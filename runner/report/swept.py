"""The ratio to the default against a number that was swept (a kernel size, a batch size), a line a mode."""

from typing import TYPE_CHECKING, Any

from runner.analysis.quantity import settings_of as settings_by_key
from runner.cell import flatten
from runner.mode import MODES, mode_name, mode_text
from runner.report.canvas import COLOURS, Frame, Label, Picture, colour_of, logarithmic
from runner.report.curves import Panel
from runner.report.family import families, settings_of
from runner.report.headline import headline
from runner.report.number import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = dict[str, Any]
Point = tuple[float, Cell]
LEAST_POINTS = 3  # fewer make no line
MOST_PANELS = 6
HEIGHT = 2.2  # inches
WIDE = 3  # times: ratios that lie so far apart get a logarithmic axis


def swept(summary: dict[str, Any], panels: list[Panel], frame: Frame) -> Picture | None:
    """A panel for everything else that differs (precision, ...), with the published ratios that a recipe has.

    None where no number of at least three values was swept.
    """
    key = swept_key(summary)
    found = _groups(summary, key) if key else []
    if not key or not found:
        return None
    groups = found[:MOST_PANELS]
    few = f" {MOST_PANELS} of {len(found)} panels are drawn." if len(found) > MOST_PANELS else ""
    told = f"Bar: simultaneous 95 % interval. Cross: published, measured on other hardware and software.{few}"
    title = f"Ratio to default (F,F) against {key}: {headline(summary)}"
    picture, axes = frame.picture(title, told, [HEIGHT] * len(groups))
    for group, one in zip(groups, axes, strict=True):
        _panel(one, group, key, summary, frame)
    return picture


def swept_key(summary: dict[str, Any]) -> str | None:
    """The setting within a group that has the most numbers as values, three at least; the first of several."""
    values: dict[str, set[float]] = {}
    for cell in summary["cells"]:
        for key, value in flatten(cell["config"]).items():
            if type(value) in (int, float) and key.count(".") == 1 and not key.startswith(("cudnn.", "seeds.")):
                values.setdefault(key, set()).add(value)
    best = max(sorted(values), key=lambda key: len(values[key]), default=None)
    return best if best and len(values[best]) >= LEAST_POINTS else None


def _groups(summary: dict[str, Any], key: str) -> list[list[Cell]]:
    """The cells that have a ratio, in groups that differ in mode and the swept number alone."""
    group, _, name = key.partition(".")
    known = [cell for cell in summary["cells"] if name in cell["config"].get(group, {}) and _ratio(cell) is not None]
    stripped = [cell | {"config": _without(cell["config"], group, name), "whole": cell} for cell in known]
    found = [[cell["whole"] for cell in family] for family in families({**summary, "cells": stripped})]
    return [cells for cells in found if len({_value(cell, key) for cell in cells}) >= LEAST_POINTS and _told(cells)]


def _told(cells: list[Cell]) -> bool:
    """Whether any of them is compared with the default, and not the default itself."""
    return any(not cell["speed"]["ratio_to_baseline"]["baseline"] for cell in cells)


def _without(config: dict[str, Any], group: str, name: str) -> dict[str, Any]:
    return config | {group: {key: value for key, value in config[group].items() if key != name}}


def _ratio(cell: Cell) -> float | None:
    ratio = cell["speed"]["ratio_to_baseline"]
    value: float | None = 1.0 if ratio["baseline"] else ratio["value"]
    return value


def _value(cell: Cell, key: str) -> float:
    return float(flatten(cell["config"])[key])


def _panel(axes: "Axes", cells: list[Cell], key: str, summary: dict[str, Any], frame: Frame) -> None:
    axes.axhline(1, color="#888888", linewidth=0.8)
    labels, heights = [], [1.0]
    for mode in MODES.values():
        own = [cell for cell in cells if mode_name(cell["config"]["cudnn"]) == mode]
        points = sorted(((_value(cell, key), cell) for cell in own), key=lambda point: point[0])
        if points:
            heights += _line(axes, points)
            labels.append(_label(points, key))
    published = [(_value(cell, key), cell, ratio) for cell in cells for ratio in published_ratios(summary, cell)]
    for value, cell, ratio in published:
        axes.plot(value, ratio, "x", color=colour_of(cell), markersize=8, markeredgewidth=2, clip_on=False)
        labels.append(Label(ratio, f"{ratio:g}", f"published: {ratio:g} at {key}={value:g}", colour_of(cell)))
        heights.append(ratio)
    if max(heights) > WIDE * min(heights):
        logarithmic(axes, (1, 2, 5))
    axes.set(xlabel=key, ylabel="step time / default's", xticks=sorted({_value(cell, key) for cell in cells}))
    frame.title(axes, *settings_of(cells))
    frame.beside(axes, HEIGHT, labels)


def _line(axes: "Axes", points: list[Point]) -> list[float]:
    """Draw a mode's line with its intervals; returns everything that the axis must hold."""
    colour, values = colour_of(points[0][1]), [value for value, _ in points]
    ratios = [_ratio(cell) or 1.0 for _, cell in points]
    axes.plot(values, ratios, "o-", color=colour, linewidth=1.2, markersize=4)
    held = list(ratios)
    for value, cell in points:
        interval = cell["speed"]["ratio_to_baseline"]["ci95"]
        if interval and not cell["speed"]["ratio_to_baseline"]["baseline"]:
            low, high = max(interval[0], ratios[0] / 10), min(interval[1], 10 * max(ratios))  # where it goes on
            axes.vlines(value, low, high, color=colour, linewidth=2)
            held += [low, high]
    return held


def _label(points: list[Point], key: str) -> Label:
    value, cell = points[-1]
    ratio, cudnn = _ratio(cell) or 1.0, cell["config"]["cudnn"]
    words = f"{mode_text(cudnn)}\n{number(ratio)} at {key}={value:g}"
    return Label(ratio, mode_text(cudnn).split()[-1], words, COLOURS[mode_name(cudnn)])


def published_ratios(summary: dict[str, Any], cell: Cell) -> list[float]:
    """What a recipe's rows say of this cell's step time over that of the default with the same other settings."""
    rows = summary["recipe"]["rows"] if summary.get("recipe") else []
    there = settings_by_key(cell["config"])
    return [
        float(row["value"])
        for row in rows
        if row["quantity"] == "step_time_ratio"
        and isinstance(row["value"], int | float)
        and row["cell"].items() <= there.items()
        and row["over"] == row["cell"] | {"cudnn": "default"}
    ]
