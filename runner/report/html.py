"""report.html: the study as one page that opens without a network and says what report.md says, with plots."""

import base64
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.report.canvas import name_of, style
from runner.report.content import Content
from runner.report.text import one_line

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from runner.report.plots import PagePlot

MOST_WORDS = 8  # cells that a plot has words for: of more the table tells
MOST_LINES = 16  # of a list: a longer one is opened by a click


def page(content: Content, plots: Sequence["PagePlot"], notes: Sequence[str]) -> str:
    """The page's text; `notes` stand below the plots: what is not drawn."""
    return _template().render(content=content, plots=plots, notes=notes)


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined  # takes 0.1 s, which no start of a sweep should pay
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_shown, trim_blocks=True)
    names = {"address": _address, "breakable": _breakable, "colour": name_of, "lines": _lines}
    limits = {"most_lines": MOST_LINES, "most_words": MOST_WORDS}
    environment.globals |= {**names, **limits, "style": Markup(style())}
    return environment.from_string((Path(__file__).parent / "template.html").read_text(encoding="utf-8"))


def _shown(value: Any) -> Any:
    """Text from anywhere in one line that steers nothing; what is markup already stays."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else one_line(value)


def _lines(block: Sequence[str]) -> "Markup":
    """Text in lines as they are."""
    from markupsafe import Markup

    return Markup("\n").join(map(one_line, block))


def _breakable(text: str) -> "Markup":
    """A mode's long name may go on in the next line after its underscore."""
    from markupsafe import Markup

    return Markup("_<wbr>").join(one_line(text).split("_"))


def _address(svg: str) -> str:
    """A picture as an address that holds all of it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
