"""The frame of a plot: its size, title, foot and the texts beside the axes; colours that are the same in every plot."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any

from runner.mode import mode_name
from runner.report.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, whose colours people with any colour vision tell apart.
COLOURS = {
    "default": "#000000",
    "benchmark": "#0072B2",
    "deterministic": "#D55E00",
    "deterministic_benchmark": "#009E73",
}
# In inches. The right margin holds the text beside each line, which needs no legend and no colour to be understood.
WIDTH, LEFT, RIGHT, GAP, LINE = 7.0, 0.74, 2.15, 0.72, 0.16
TEXT_LINE = 0.135  # of the texts beside the axes
DOTS_PER_INCH = 150  # for a page that shows 700 points: half as many again are sharp on a dense screen
HIGH = 7.0  # higher pictures have 100 dots an inch: a page with several must stay light
HUES = 256  # a palette of so many loses nothing that can be seen, and half of the bytes
LONGEST = 300  # characters of a line: settings come from users, and may be of any length


@contextmanager
def usual_style() -> Iterator[None]:
    """Our own style for as long as it lasts: a user's would change the plots, and their bytes."""
    from matplotlib import rc, rc_context, rcdefaults

    with rc_context():
        rcdefaults()
        rc("font", size=9)
        rc("text", parse_math=False)  # a dollar in a user's setting begins no formula
        rc("axes", grid=True, axisbelow=True)
        rc("axes.spines", top=False, right=False)
        rc("grid", alpha=0.25)
        yield


def colour_of(cell: dict[str, Any]) -> str:
    """The colour of a cell, which is its mode's."""
    return COLOURS[mode_name(cell["config"]["cudnn"])]


def plain(text: str, width: int) -> str:
    """Text from anywhere in printable lines of `width` characters."""
    lines = (shorten(one_line(line), LONGEST, placeholder=" ...") for line in text.split("\n"))
    return "\n".join(fill(line, width) for line in lines)


def framed(title: str, heights: Sequence[float], foot: str) -> tuple["Figure", list["Axes"]]:
    """A figure with axes of these heights in inches, one below the other, a title above and small print below."""
    from matplotlib.figure import Figure

    title, foot = plain(title, 80), plain(foot, 118)
    above, below = 0.55 + LINE * title.count("\n"), 0.72 + LINE * foot.count("\n")
    total = above + sum(heights) + GAP * (len(heights) - 1) + below
    figure = Figure(figsize=(WIDTH, total), dpi=DOTS_PER_INCH if total < HIGH else 100, facecolor="white")
    figure.text(0.015, 1 - 0.08 / total, title, weight="bold", va="top")
    figure.text(0.015, 0.06 / total, foot, size=7, color="#444444", va="bottom", linespacing=1.4)
    axes, top = [], total - above
    for height in heights:
        area = (LEFT / WIDTH, (top - height) / total, (WIDTH - LEFT - RIGHT) / WIDTH, height / total)
        axes.append(figure.add_axes(area))
        top -= height + GAP
    return figure, axes


def logarithmic(axes: "Axes") -> None:
    """A logarithmic y axis with plain numbers: 30, 100, 300."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:,.10g}")


def beside(axes: "Axes", height: float, texts: Sequence[tuple[float, str, str]]) -> None:
    """Write (where on the y axis, text, colour) to the right of axes of `height` inches, none over another."""
    to_inches = axes.transData + axes.transAxes.inverted()
    texts = sorted(texts, key=lambda one: one[0])
    lines = [plain(text, 34) for _, text, _ in texts]
    wanted = [height * to_inches.transform((0, where))[1] for where, _, _ in texts]
    needed = [0.06 + TEXT_LINE * (1 + text.count("\n")) for text in lines]
    for text, place, (_, _, colour) in zip(lines, spread(wanted, needed, height), texts, strict=True):
        axes.text(1.02, place / height, text, color=colour, transform=axes.transAxes, size=7.5, va="center")


def spread(wanted: Sequence[float], needed: Sequence[float], height: float) -> list[float]:
    """The centres of texts that need so much each, from below: near the wanted ones in order, and none over another."""
    places: list[float] = []
    edge = 0.0
    for centre, need in zip(wanted, needed, strict=True):
        places.append(max(centre, edge + need / 2))
        edge = places[-1] + need / 2
    edge = max(height, sum(needed))
    for index in range(len(places) - 1, -1, -1):
        places[index] = min(places[index], edge - needed[index] / 2)
        edge = places[index] - needed[index] / 2
    return places


def png(figure: "Figure") -> bytes:
    """The figure as PNG with nothing in it but pixels: equal plots are equal bytes."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")
    picture = Image.open(drawn).convert("RGB").quantize(HUES, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()
