"""Advice: what may remove a difference in a cell, from the table of remedies, never what the cell has already."""

import re
from dataclasses import dataclass
from typing import Any

from runner.analysis.command import has
from runner.analysis.divergence import Divergence
from runner.analysis.finding import Finding
from runner.analysis.remedies import TABLE
from runner.analysis.remedy import Flat
from runner.cell import flatten


@dataclass(frozen=True)
class Advice:
    """What to change: an override of the command line, None where no setting does it; in words; how that is known."""

    change: str | None
    words: str
    source: str


NOTHING_KNOWN = Advice(
    None,
    "the operation itself: nothing known removes it; make a file for a bug report with --repro",
    "no entry in our table",
)
GO_DEEPER = Advice(None, "the operation within it, which probe=ops names", "a trace of modules shows no operations")


def advice(found: Finding, config: dict[str, Any]) -> list[Advice]:
    """What may remove what was found in a cell with these settings; nothing that the cell has already."""
    if "." not in found.name:
        return [GO_DEEPER]
    return _fitting(found.rung, found.name, found.repeats, config) or [NOTHING_KNOWN]


def advice_above(divergence: Divergence, config: dict[str, Any]) -> list[Advice]:
    """The same for a difference of start or data; nothing where these are equal. It needs no probe."""
    rung = "start" if not divergence.same_start else "data" if divergence.first_data_step else None
    return _fitting(rung, "", None, config) if rung else []


def _fitting(rung: str, name: str, repeats: str | None, config: dict[str, Any]) -> list[Advice]:
    flat, short = flatten(config), name.split(".")[1] if "." in name else name
    rows = [row for row in TABLE if row.rung == rung and re.fullmatch(row.names, short) and row.when(flat)]
    rows = [row for row in rows if row.device in (None, flat.get("device", "cuda"))]
    rows = [row for row in rows if repeats is None or repeats != row.not_if]
    chosen: dict[str, Advice] = {}
    for row in rows:
        if _is_open(config, flat, row.change):
            chosen.setdefault(row.change or row.words, Advice(row.change, row.words, row.source))
    return list(chosen.values())


def _is_open(config: dict[str, Any], flat: Flat, change: str | None) -> bool:
    """Whether the cell has such a setting, with another value; so it is where nothing is to be set."""
    if change is None:
        return True
    key = change.partition("=")[0]
    there = "." not in key or key in flat or key.startswith("determinism.")
    return there and not has(config, change)
