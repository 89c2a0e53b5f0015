"""The table of a study on the terminal."""

import io
import sys
from functools import cache
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.report.answer import opening
from runner.report.headline import headline
from runner.report.outlet import Outlet
from runner.report.platform import platform_words
from runner.report.recipe import verdict_lines
from runner.report.table import header, rows
from runner.report.text import one_line
from runner.report.why import change_lines, short_lines

FILE_WIDTH = 200
WIDE = 120


class Terminal(Console):
    """Standard output for texts that may hold anything, and that must never cost more than themselves.

    A character that the output's encoding lacks is printed as "?"; for a reader that does not read see Outlet. rich's
    markup is off: brackets are intervals.
    """

    def __init__(self, **options: Any):
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        self.outlet = _outlet(sys.stdout) if sys.stdout else None
        super().__init__(
            file=cast("IO[str] | None", self.outlet), markup=False, highlight=False, emoji=False, **options
        )

    @property
    def redraws(self) -> bool:
        """Whether what stands there can be drawn again: on a terminal that can, whatever FORCE_COLOR says of a file."""
        return self.outlet is not None and self.outlet.isatty() and self.is_interactive

    @property
    def wide(self) -> bool:
        """Whether there is room for columns in the lines; a file has any."""
        return not self.is_terminal or self.width >= WIDE

    @property
    def behind(self) -> bool:
        """Whether it waits for a reader that has stopped."""
        return self.outlet is not None and self.outlet.behind

    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor as it is: a process that was killed could not show it again."""
        return False


@cache
def _outlet(stream: TextIO) -> Outlet:
    """The one way to a stream: lines of several consoles must keep their order."""
    return Outlet(stream)


def show(summary: dict[str, Any], folder: Path) -> None:
    """Print headline, table and answer of the study in a folder."""
    console = Terminal()
    if not console.is_terminal:
        console.width = FILE_WIDTH
    table = _table(summary)
    unbroken = console.measure(table, options=console.options.update(width=FILE_WIDTH)).minimum
    console.print(table if unbroken <= console.width else _listed(summary))
    changed = [f"what the change did: {words}" for words in change_lines(summary)]
    first = (*platform_words(summary), *opening(summary))
    for line in (*first, *verdict_lines(summary), *changed, *short_lines(summary, str(folder))):
        console.print(f"- {one_line(line)}")


def _table(summary: dict[str, Any]) -> Table:
    table = Table(title=one_line(headline(summary)))
    for name in header(summary):
        table.add_column(one_line(name), overflow="fold")
    for row in rows(summary):
        table.add_row(*map(one_line, row))
    return table


def _listed(summary: dict[str, Any]) -> Group:
    """The same with a line a figure, for a terminal in which the columns would break within words."""
    _, *names = header(summary)
    parts: list[RenderableType] = [Text(one_line(headline(summary)), style="italic")]
    for label, *texts in rows(summary):
        figures = Table.grid(padding=(0, 2, 0, 0))
        for name, text in zip(names, texts, strict=True):
            figures.add_row(one_line(name), one_line(text))
        parts += [Text(one_line(label), style="bold"), Padding.indent(figures, 2)]
    return Group(*parts)
