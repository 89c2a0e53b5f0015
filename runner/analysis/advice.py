"""Advice: what may remove a difference in a cell, from the table of remedies, never what the cell has already."""

import re
from dataclasses import dataclass
from typing import Any

from runner.analysis.command import has
from runner.analysis.finding import Finding
from runner.analysis.remedies import TABLE, Flat
from runner.cell import flatten


@dataclass(frozen=True)
class Advice:
    """What to change: overrides of the command line, none where no setting does it; in words; and how that is known."""

    change: list[str]
    words: str
    source: str


NOTHING_KNOWN = Advice(
    [], "nothing known removes it; make a file for a bug report with --repro", "no entry in our table"
)
GO_DEEPER = Advice([], "probe=ops names the operation within it", "a trace of modules shows no operations")


def advice(found: Finding, config: dict[str, Any]) -> list[Advice]:
    """What may remove what was found in a cell with these settings; nothing that the cell has already."""
    if "." not in found.name:
        return [GO_DEEPER]
    return _fitting(found.rung, found.name, found.repeats, config) or [NOTHING_KNOWN]


def above(rung: str, config: dict[str, Any]) -> list[Advice]:
    """The same for a difference above operations: "start" or "data"."""
    return _fitting(rung, "", None, config)


def _fitting(rung: str, name: str, repeats: str | None, config: dict[str, Any]) -> list[Advice]:
    flat, short = flatten(config), name.split(".")[1] if "." in name else name
    rows = [row for row in TABLE if row.rung == rung and re.fullmatch(row.names, short) and row.when(flat)]
    rows = [row for row in rows if row.device in (None, flat.get("device", "cuda"))]
    rows = [row for row in rows if repeats is None or repeats != row.not_if]
    chosen: dict[str, Advice] = {}
    for row in rows:
        if _is_open(config, flat, row.change):
            chosen.setdefault(" ".join(row.change) or row.words, Advice(row.change, row.words, row.source))
    return list(chosen.values())


def _is_open(config: dict[str, Any], flat: Flat, change: list[str]) -> bool:
    """Whether the cell has such a setting, with another value."""
    keys = [one.partition("=")[0] for one in change]
    there = all("." not in key or key in flat or key.startswith("determinism.") for key in keys)
    return there and not any(has(config, one) for one in change)
