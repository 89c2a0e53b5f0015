"""The table of a study on the terminal."""

import io
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from runner.report.answer import opening
from runner.report.markdown import headline
from runner.report.recipe import verdict_lines
from runner.report.table import header, rows
from runner.report.text import one_line
from runner.report.why import change_lines, short_lines

FILE_WIDTH = 200


class Terminal(Console):
    """Standard output for texts that may hold anything, and that must never cost more than themselves.

    A character that the output's encoding lacks is printed as "?"; once the output is closed or its disk full, what
    follows is dropped. rich's markup is off: brackets are intervals.
    """

    def __init__(self, **options: Any):
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, or drop it."""
        try:
            super().print(*objects, **options)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Print no more, where rich would end the process; what waits in the buffer must not fail at its end either."""
        self.quiet = True
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def show(summary: dict[str, Any], folder: Path) -> None:
    """Print headline, table and answer of the study in a folder."""
    console = Terminal()
    if not console.is_terminal:
        console.width = FILE_WIDTH
    table = Table(title=one_line(headline(summary)))
    for name in header(summary):
        table.add_column(one_line(name), overflow="fold")
    for row in rows(summary):
        table.add_row(*map(one_line, row))
    console.print(table)
    changed = [f"what the change did: {words}" for words in change_lines(summary)]
    for line in (*opening(summary), *verdict_lines(summary), *changed, *short_lines(summary, str(folder))):
        console.print(f"- {one_line(line)}")
