"""What a mode costs beside what it buys: step time against the spread from trial to trial, a point a cell."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runner.report.canvas import Frame, Picture, colour_of, key_of, plain
from runner.report.canvas import spread as spread_out
from runner.report.family import families, settings_of
from runner.report.table import main_metric
from runner.report.words import phase_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = dict[str, Any]
Measured = tuple[float, tuple[float, float] | None]  # with its 95 % interval
Spread = Callable[[Cell], Measured | None]
HEIGHT, KEY = 2.4, 0.16  # inches: of the axes, of a key


def tradeoff(summary: dict[str, Any], most: int, frame: Frame) -> Picture | None:
    """A panel for each of the first `most` families with a step time and a spread."""
    name, spread = _spread(summary)
    told = [[cell for cell in family if _known(cell, spread)] for family in families(summary)]
    shown = [family for family in told if family][:most]
    if not shown:
        return None
    how = "A point a mode, bars: 95 % intervals. Left is faster, down is more alike; at 0 all trials are equal."
    picture, axes = frame.picture("Cost against run-to-run variance", how, [HEIGHT] * len(shown))
    for family, one in zip(shown, axes, strict=True):
        _points(one, family, spread)
        one.set(xlabel="latency (ms)" if phase_of(family[0]) == "infer" else "step time (ms)", ylabel=plain(name, 40))
        frame.title(one, *settings_of(family))
    return picture


def _known(cell: Cell, spread: Spread) -> bool:
    return cell["speed"]["step_ms"] is not None and spread(cell) is not None


def _spread(summary: dict[str, Any]) -> tuple[str, Spread]:
    """The first measure of spread by which any cell's trials differ: metric, predictions, weights."""
    metric = main_metric(summary)
    measures: list[tuple[str, Spread]] = [
        (f"sd of {metric}", lambda cell: _of_metric(cell, metric)),
        ("disagreement of predictions (share)", _of_pairs("disagreement")),
        ("distance of two trials' weights", _of_pairs("weight_l2")),
    ]
    found = [[value for cell in summary["cells"] if (value := measure(cell))] for _, measure in measures]
    telling = [one for one, values in zip(measures, found, strict=True) if any(value for value, _ in values)]
    known = [one for one, values in zip(measures, found, strict=True) if values]
    return (telling or known or measures)[0]


def _of_metric(cell: Cell, metric: str | None) -> Measured | None:
    figure = cell["metrics"].get(metric)
    return _measured(figure["sd"], figure["sd_ci95"]) if figure else None


def _of_pairs(name: str) -> Spread:
    return lambda cell: _measured(cell["reproducibility"][name], cell["reproducibility"][f"{name}_ci95"])


def _measured(value: float | None, interval: tuple[float, float] | None) -> Measured | None:
    return None if value is None else (value, interval)


def _points(axes: "Axes", family: list[Cell], spread: Spread) -> None:
    """A point each with its intervals; no key is over another."""
    drawn = []
    for cell, measured in ((cell, spread(cell)) for cell in family):
        colour, figure = colour_of(cell), cell["speed"]["step_ms"]
        value, interval = measured or (0.0, None)  # those without were left out
        if figure["ci95"]:
            axes.hlines(value, *figure["ci95"], color=colour, linewidth=1.5)
        if interval and value:
            axes.vlines(figure["mean"], interval[0], interval[1], color=colour, linewidth=1.5)
        axes.plot(figure["mean"], value, "o", color=colour, markersize=6, clip_on=False)
        drawn.append((value, figure["mean"], cell))
    axes.margins(x=0.12)
    high = 1.1 * float(axes.dataLim.y1) or 1.0  # where no cell differs
    axes.set_ylim(-0.04 * high, high)
    _keys(axes, sorted(drawn, key=lambda point: point[:2]))


def _keys(axes: "Axes", points: list[tuple[float, float, Cell]]) -> None:
    """The key of each point, from below, a little to the right of it and each on a line of its own."""
    high = axes.get_ylim()[1]
    heights = [HEIGHT * value / high + KEY / 2 for value, _, _ in points]
    for (_, mean, cell), place in zip(points, spread_out(heights, [KEY] * len(points), HEIGHT), strict=True):
        where = mean, high * place / HEIGHT
        axes.annotate(key_of(cell), where, (5, 0), textcoords="offset points", color=colour_of(cell), size=8.5)
