"""The table of a study on the terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from runner.report.answer import answers
from runner.report.markdown import headline
from runner.report.table import header, rows

FILE_WIDTH = 200


def show(summary: dict[str, Any]) -> None:
    """Print headline, table and answer. Brackets in cells are intervals, so rich's markup is off."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    table = Table(title=headline(summary))
    for name in header(summary):
        table.add_column(name, overflow="fold")
    for row in rows(summary):
        table.add_row(*row)
    console.print(table)
    for line in answers(summary):
        console.print(f"- {line}")
