"""The frame of a plot: its size, title, foot and the texts beside the axes; colours that are the same in every plot."""

import io
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any

from runner.mode import mode_name, mode_text
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
INK, CARD, RULE, BETWEEN = "#000000", "#ffffff", "#444444", "#888888"
# By name, as a light page has them, and what a dark one has in their place: the same hues, as bright as its text.
LIGHT = {"ink": INK, "card": CARD, "rule": RULE} | {name: COLOURS[name] for name in list(COLOURS)[1:]}
DARK = {"ink": "#e8e8e8", "card": "#1c2128", "rule": "#b8c0c8"} | {
    "benchmark": "#56B4E9",
    "deterministic": "#F08A3C",
    "deterministic_benchmark": "#2FC99B",
}
# In inches. The right margin holds the text beside each line, which needs no legend and no colour to be understood.
WIDTH, LEFT, RIGHT, GAP, LINE = 7.0, 0.74, 2.15, 0.72, 0.16
# On a page the words stand around the plot, so that a telephone shows it large enough; keys alone are beside the lines.
PAGE_WIDTH, PAGE_RIGHT, PAGE_ABOVE, PAGE_BELOW = 4.3, 0.42, 0.3, 0.48
TEXT_LINE = 0.135  # of the texts beside the axes
DOTS_PER_INCH = 150  # for a page that shows 700 points: half as many again are sharp on a dense screen
HIGH = 7.0  # higher pictures have 100 dots an inch: a page with several must stay light
HUES = 256  # a palette of so many loses nothing that can be seen, and half of the bytes
MOST_TITLE = 106  # characters above axes on a page
LONGEST = 300  # characters of a line: settings come from users, and may be of any length


@contextmanager
def usual_style() -> Iterator[None]:
    """Our own style for as long as it lasts: a user's would change the plots, and their bytes.

    That matplotlib has no folder for its cache, or fills it for the first time, is nothing to tell at a study's end.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
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


def key_of(cell: dict[str, Any]) -> str:
    """The pair of a cell's mode, which names it where there is no room: "(F,T)"."""
    return mode_text(cell["config"]["cudnn"]).split()[-1]


def plain(text: str, width: int) -> str:
    """Text from anywhere in printable lines of `width` characters."""
    lines = (shorten(one_line(line), LONGEST, placeholder=" ...") for line in text.split("\n"))
    return "\n".join(fill(line, width) for line in lines)


@dataclass(frozen=True)
class Picture:
    """A plot: its title, how to read it, and what is drawn."""

    title: str
    told: str
    figure: "Figure"


@dataclass(frozen=True)
class Label:
    """The text that belongs to a line: where on the y axis, a key of a few characters, all words, the colour."""

    where: float
    key: str
    words: str
    colour: str


@dataclass(frozen=True)
class Frame:
    """What surrounds axes: `foot` for a picture that must explain itself, None on a page that has words around it."""

    foot: str | None = None

    def picture(self, title: str, told: str, heights: Sequence[float]) -> tuple[Picture, list["Axes"]]:
        """A picture with axes of these heights in inches, one below the other."""
        if self.foot is None:
            figure, axes = _stacked(PAGE_WIDTH, PAGE_RIGHT, PAGE_ABOVE, heights, PAGE_BELOW)
        else:
            figure, axes = _alone(title, f"{told}\n{self.foot}", heights)
        return Picture(title, told, figure), axes

    def title(self, axes: "Axes", *parts: str) -> None:
        """Name axes in small letters; on a page in two lines at most, for there is no room for more."""
        words = one_line(", ".join(filter(None, parts)))
        if self.foot is None:
            words = fill(words if len(words) <= MOST_TITLE else f"{words[:MOST_TITLE]}...", MOST_TITLE // 2 + 2)
        axes.set_title(plain(words, 90), loc="left", size=8)

    def beside(self, axes: "Axes", height: float, labels: Sequence[Label]) -> None:
        """Write words, or on a page keys, to the right of axes of `height` inches, none over another."""
        to_inches = axes.transData + axes.transAxes.inverted()
        places = [(height * to_inches.transform((0, one.where))[1], index) for index, one in enumerate(labels)]
        wanted, labels = [place for place, _ in sorted(places)], [labels[index] for _, index in sorted(places)]
        lines = [one.key if self.foot is None else plain(one.words, 34) for one in labels]
        needed = [0.06 + TEXT_LINE * (1 + text.count("\n")) for text in lines]
        size = 8.5 if self.foot is None else 7.5
        for text, place, one in zip(lines, spread(wanted, needed, height), labels, strict=True):
            axes.text(1.02, place / height, text, color=one.colour, transform=axes.transAxes, size=size, va="center")


def _alone(title: str, foot: str, heights: Sequence[float]) -> tuple["Figure", list["Axes"]]:
    """Axes with a title above and small print below."""
    title, foot = plain(title, 80), plain(foot, 118)
    above, below = 0.55 + LINE * title.count("\n"), 0.72 + LINE * foot.count("\n")
    figure, axes = _stacked(WIDTH, RIGHT, above, heights, below)
    total = figure.get_figheight()
    figure.text(0.015, 1 - 0.08 / total, title, weight="bold", va="top")
    figure.text(0.015, 0.06 / total, foot, size=7, color=RULE, va="bottom", linespacing=1.4)
    return figure, axes


def _stacked(
    width: float, right: float, above: float, heights: Sequence[float], below: float
) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    total = above + sum(heights) + GAP * (len(heights) - 1) + below
    figure = Figure(figsize=(width, total), dpi=DOTS_PER_INCH if total < HIGH else 100, facecolor=CARD)
    axes, top = [], total - above
    for height in heights:
        area = (LEFT / width, (top - height) / total, (width - LEFT - right) / width, height / total)
        axes.append(figure.add_axes(area))
        top -= height + GAP
    return figure, axes


def few_numbers(axes: "Axes") -> None:
    """Few numbers on a y axis from 0, each as short as it can be: there is no room for 0.00025."""
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
    axes.locator_params(axis="y", nbins=5)


def logarithmic(axes: "Axes", each: Sequence[float] = (1, 3)) -> None:
    """A logarithmic y axis with plain numbers, as a rule 30, 100, 300; `each` are the ones within a power of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=each))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:,.10g}" if value > 1e-4 else f"{value:g}")


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


def svg(figure: "Figure", name: str) -> str:
    """The figure as SVG with nothing in it that changes: equal plots are equal text. It follows a dark page.

    `name` keeps the names inside apart from those of other plots.
    """
    from matplotlib import rc_context

    drawn = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = drawn.getvalue()
    text = re.sub(r' (?:d|x|y|transform)="[^"]*"', _rounded, text[text.index("<svg") :])
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, 'DejaVu Sans', sans-serif", text)
    for name, colour in LIGHT.items():
        text = re.sub(colour, f"var(--{name})", text, flags=re.IGNORECASE)
    return text.replace("<defs>", f"<style>svg{{fill:var(--ink)}}{style()}</style><defs>", 1)


def _rounded(attribute: re.Match[str]) -> str:
    """Without the digits that cannot be seen: a hundredth of a point is enough."""
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute[0])


def style() -> str:
    """The colours by name, for a light page and for a dark one, as CSS."""
    light, dark = ("".join(f"--{name}:{one};" for name, one in colours.items()) for colours in (LIGHT, DARK))
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def name_of(cell: dict[str, Any]) -> str:
    """The name of a cell's colour: its mode's, but that of the default is the text's own."""
    mode = mode_name(cell["config"]["cudnn"])
    return mode if mode in LIGHT else "ink"
