"""The drawings of speed, each one picture with a panel for every family of cells. Take panels, know no files."""

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.report.canvas import Frame, Label, Picture, colour_of, few_numbers, key_of, logarithmic
from runner.report.curves import Curve, Panel
from runner.report.headline import headline
from runner.report.number import number
from runner.report.words import phase_of, ratio_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 3  # so many times the other steps: first steps that stand this far out get a logarithmic axis
MOST_POINTS = 250  # of a line: more cannot be seen, and cost bytes
LINES = {"log": 1, "linear": 3, "ratio": 4}  # of text that a cell needs beside the axes, at most
WIDEST = 2  # times the estimate: where an interval goes on, its figures tell
STYLES = ("-", "--", "-.", ":")  # for cells of one mode in one panel
STEP = {"train": "step", "infer": "batch", "calls": "call"}
STEPS = {"train": "steps", "infer": "batches", "calls": "calls"}
TIME = {"train": "step time", "infer": "latency", "calls": "call time"}


def step_time(summary: dict[str, Any], panels: list[Panel], frame: Frame) -> Picture:
    """Where first steps stand far out, above all steps on a logarithmic axis; below the steady ones on a linear one."""
    views = [(panel, firsts, log) for panel in panels for firsts, log in _views(panel)]
    heights = [_height(panel, "log" if log else "linear") for panel, _, log in views]
    picture, axes = frame.picture(f"Time of each step: {headline(summary)}", _told(panels), heights)
    for (panel, firsts, log), one, height in zip(views, axes, heights, strict=True):
        _lines(one, panel, firsts)
        if log:
            logarithmic(one)
            frame.title(one, panel.settings, f"every {STEP[panel.phase]}, logarithmic axis")
            labels = [_label(curve, curve.first_ms, _first_words(curve, panel)) for curve in panel.curves]
        else:
            one.set_ylim(_limits(panel, firsts))
            one.set_xlabel(STEP[panel.phase])
            frame.title(one, panel.settings, "" if firsts else "without the first of each input shape")
            labels = [_label(curve, curve.end_ms, _steady_words(curve)) for curve in panel.curves]
        frame.beside(one, height, labels)
    return picture


def _label(curve: Curve, where: float, words: str) -> Label:
    return Label(where, key_of(curve.cell), words, colour_of(curve.cell))


def _told(panels: list[Panel]) -> str:
    width = max(map(_width, panels))
    over = f"trials and {width} steps" if width > 1 else "trials"
    return f"Line: median over {over}. Shaded: all trials. Ring: first step of an input shape, where modes tune."


def _width(panel: Panel) -> int:
    """How many steps make a point of a line."""
    return ceil(max(curve.steps for curve in panel.curves) / MOST_POINTS)


def _views(panel: Panel) -> list[tuple[bool, bool]]:
    """Whether first steps are shown, and on a logarithmic axis, in each of the axes that a panel has."""
    return [(True, True), (False, False)] if any(map(_stands_out, panel.curves)) else [(True, False)]


def _stands_out(curve: Curve) -> bool:
    medians = np.median(curve.step_ms, axis=0)
    return not curve.first.all() and bool(medians.max() > FAR * np.median(medians))


def _height(panel: Panel, kind: str) -> float:
    """In inches: what the texts of all cells need, at least those of four."""
    return (0.1 + 0.145 * LINES[kind]) * max(4, len(panel.curves))


def _lines(axes: "Axes", panel: Panel, firsts: bool) -> None:
    """The median over trials and their range: a line of the steady steps, rings at first steps."""
    axes.set(xlim=(0, 1 + max(curve.steps for curve in panel.curves)), ylabel=f"{TIME[panel.phase]} (ms)")
    for index, curve in enumerate(panel.curves):
        colour, style = _look(panel, index)
        steps, middle, least, most = curve.steady_over_trials(_width(panel))
        axes.plot(steps, middle, color=colour, linestyle=style, linewidth=1.2)
        axes.fill_between(steps, least, most, color=colour, alpha=0.18, linewidth=0)
        if firsts:
            steps, middle, least, most = curve.firsts_over_trials()
            axes.vlines(steps, least, most, color=colour, alpha=0.35, linewidth=1.2)
            axes.plot(steps, middle, "o", color=colour, markerfacecolor="none", markersize=4, clip_on=False)


def _look(panel: Panel, index: int) -> tuple[str, str]:
    """Colour and line style of a cell: the colour is its mode's, a further cell of the same mode has another style."""
    colours = [colour_of(curve.cell) for curve in panel.curves]
    return colours[index], STYLES[colours[:index].count(colours[index]) % len(STYLES)]


def _limits(panel: Panel, firsts: bool) -> tuple[float, float]:
    """What holds all medians and, of the range over trials, all but the widest twentieth, with some air."""
    drawn = [curve.steady_over_trials(_width(panel)) for curve in panel.curves]
    drawn += [curve.firsts_over_trials() for curve in panel.curves if firsts]
    _, middle, least, most = np.hstack(drawn)
    low = min(middle.min(), np.percentile(least, 5))
    high = max(middle.max(), np.percentile(most, 95))
    air = 0.08 * (high - low) or 0.08 * high
    return low - air, high + air


def _first_words(curve: Curve, panel: Panel) -> str:
    return f"{key_of(curve.cell)} first {STEP[panel.phase]} {number(curve.first_ms)} ms"


def _steady_words(curve: Curve) -> str:
    speed = curve.cell["speed"]
    plans = f"draws {len(speed['plans'])} plans, mean " if speed["plans"] else ""
    steady = f"{plans}{number(curve.steady_ms)} ms" if curve.steady_ms else "too few steps for a steady one"
    return f"{curve.name}\n{steady}{', bound by the host' if speed['host_bound'] else ''}"


def total_time(summary: dict[str, Any], panels: list[Panel], frame: Frame) -> Picture:
    """The time of all steps so far, continued to where tuning pays."""
    told = "Median over trials, waits left out. Dashed: foretold from the steady step. Diamond: tuning has paid back."
    heights = [_height(panel, "linear") for panel in panels]
    picture, axes = frame.picture(f"Time of all steps so far: {headline(summary)}", told, heights)
    for panel, one, height in zip(panels, axes, heights, strict=True):
        until, labels = _reach(panel, summary["plan"]["steps"]), []
        for index, curve in enumerate(panel.curves):
            steps, total_s = curve.total_s(until)
            _total(one, curve, steps, total_s, *_look(panel, index))
            labels.append(_label(curve, total_s[-1], _total_words(curve, total_s[-1], steps[-1], panel)))
        one.set(xlim=(0, until), xlabel=STEP[panel.phase], ylabel="time so far (s)")
        one.set_ylim(0, 1.03 * max(label.where for label in labels))
        few_numbers(one)
        frame.title(one, panel.settings)
        frame.beside(one, height, labels)
    return picture


def _total(axes: "Axes", curve: Curve, steps: np.ndarray, total_s: np.ndarray, colour: str, style: str) -> None:
    last = curve.steps
    axes.plot(steps[: last + 1], total_s[: last + 1], color=colour, linestyle=style, linewidth=1.6)
    axes.plot(steps[last:], total_s[last:], color=colour, linestyle=(0, (4, 2)), linewidth=1.0)
    pays = curve.break_even_steps
    if pays and pays <= steps[-1]:
        axes.plot(pays, np.interp(pays, steps, total_s), "D", color=colour, markersize=5)


def _reach(panel: Panel, planned: int) -> int:
    """The last step that is drawn: the last one taken, or a round figure beyond the last break-even within the plan."""
    taken = max(curve.steps for curve in panel.curves)
    pays = [curve.break_even_steps or 0 for curve in panel.curves]
    beyond = 1.25 * max([steps for steps in pays if steps <= max(taken, planned)], default=0)
    if beyond <= taken:
        return taken
    unit: int = max(10 ** (len(str(int(beyond))) - 1) // 2, 1)
    return unit * ceil(beyond / unit)


def _total_words(curve: Curve, total_s: float, steps: int, panel: Panel) -> str:
    total = f"{number(total_s)} s for {steps:,} {STEPS[panel.phase]}"
    return "\n".join(filter(None, [curve.name, total, pays_back(curve.cell)]))


def pays_back(cell: dict[str, Any]) -> str:
    """In words, when a cell's tuning has paid back beside the default; "" where nothing is known."""
    steps = cell["speed"]["break_even_steps"]
    if steps is None:
        return ""
    return "tuning never pays back" if steps == "never" else f"pays back after {steps:,.0f} {STEPS[phase_of(cell)]}"


def ratios(summary: dict[str, Any], panels: list[Panel], frame: Frame) -> Picture | None:
    """The ratio of every cell to its baseline with its interval, the margin as a band, single rounds as dots."""
    panels = [panel for panel in panels if any(map(_compared, panel.curves))]
    if not panels:
        return None
    heights = [_height(panel, "ratio") * len(panel.curves) / max(4, len(panel.curves)) for panel in panels]
    told = "Bar: simultaneous 95 % interval. Dot: one round. Band: differences too small to care."
    picture, axes = frame.picture(f"Ratio to default (F,F): {headline(summary)}", told, heights)
    for panel, one, height in zip(panels, axes, heights, strict=True):
        margin, rows = 1 + summary["margin"], list(enumerate(reversed(panel.curves)))  # the first cell stands on top
        one.axvspan(1 / margin, margin, color="#999999", alpha=0.25, linewidth=0)
        one.axvline(1, color="#444444", linewidth=0.8)
        for row, curve in rows:
            _ratio(one, row, curve)
        one.set(ylim=(-0.5, len(rows) - 0.5), yticks=[], xlabel=f"{TIME[panel.phase]} / default's")
        frame.title(one, panel.settings, "left is faster")
        frame.beside(one, height, [_label(curve, row, _ratio_text(curve, summary)) for row, curve in rows])
    return picture


def _compared(curve: Curve) -> bool:
    ratio = curve.cell["speed"]["ratio_to_baseline"]
    return ratio["value"] is not None and not ratio["baseline"]


def _ratio(axes: "Axes", row: int, curve: Curve) -> None:
    """The estimate with its interval, and the rounds below it; arrows end an interval that goes on."""
    ratio, colour = curve.cell["speed"]["ratio_to_baseline"], colour_of(curve.cell)
    rounds = curve.pair_ratios
    axes.plot(rounds, np.full(len(rounds), row - 0.22), ".", color=colour, alpha=0.6, markersize=4)
    if ratio["value"] is None:
        return
    axes.plot(ratio["value"], row, "o", color=colour, markersize=5)
    if ratio["ci95"]:
        low, high = ratio["value"] / WIDEST, ratio["value"] * WIDEST
        axes.hlines(row, *np.clip(ratio["ci95"], low, high), color=colour, linewidth=2)
        goes_on = [(low, "<")] * (ratio["ci95"][0] < low) + [(high, ">")] * (ratio["ci95"][1] > high)
        for end, arrow in goes_on:
            axes.plot(end, row, arrow, color=colour, markersize=6)


def _ratio_text(curve: Curve, summary: dict[str, Any]) -> str:
    return f"{curve.name}\n{ratio_words(curve.cell, summary)}"
