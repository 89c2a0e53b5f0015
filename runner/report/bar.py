"""The lines below all others on a terminal while a study works: the trials at work, and how much is done."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.progress_bar import ProgressBar
from rich.table import Table

from runner.duration import rough
from runner.reached import Reached
from runner.report.text import one_line

# A terminal writes "^C" behind the last line: it must not begin a new one, or that line would stay.
FREE_COLUMNS = 4
NARROW = 60


@dataclass(frozen=True)
class AtWork:
    """A trial at work: its cell's label, its round, counted from 1, and how far it has got as far as it has said."""

    label: str
    round: int
    reached: Reached | None


@dataclass(frozen=True)
class Standing:
    """So many of a study's trials are done; the rest takes `left_s`, None where that is not known yet."""

    done: int
    total: int
    left_s: float | None
    at_work: Sequence[AtWork]


def bar(standing: Standing, width: int) -> RenderableType:
    """A line for each trial at work, and one for the study, for a terminal of so many columns."""
    lines = Group(_trials(standing.at_work, "" if width < NARROW else "step "), _study(standing))
    return Constrain(lines, max(width - FREE_COLUMNS, 1))


def _trials(at_work: Sequence[AtWork], lead: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for one in at_work:
        table.add_row(f"{one_line(one.label)}, round {one.round}", _step(one.reached, lead), _loss(one.reached))
    return table


def _step(reached: Reached | None, lead: str) -> str:
    return f"{lead}{reached.step}/{reached.steps}" if reached else "starting"


def _loss(reached: Reached | None) -> str:
    return "" if reached is None or reached.loss is None else f"loss {reached.loss:.4g}"


def _study(standing: Standing) -> Table:
    left = "" if standing.left_s is None else f"about {rough(standing.left_s)} to go"
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(no_wrap=True)
    table.add_row(f"{standing.done}/{standing.total}", ProgressBar(max(standing.total, 1), standing.done), left)
    return table
