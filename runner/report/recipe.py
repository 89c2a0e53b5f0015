"""A recipe in words: its published figures beside the measured ones, from what summary.json holds."""

import json
from collections.abc import Sequence
from typing import Any

from runner.report.number import NONE, number

Row = dict[str, Any]
MOST_SHOWN = 16  # lines on a terminal
HEADER = ["quantity", "cell", "published", "measured [95 %]", "verdict"]


def recipe_rows(summary: dict[str, Any]) -> list[list[str]]:
    """The header and a row for each published figure; none in a study without a recipe."""
    found = summary.get("recipe")
    return [HEADER, *(_cells(row) for row in found["rows"])] if found else []


def recipe_lines(summary: dict[str, Any]) -> list[str]:
    """What stands below the table: what was measured on what, there and here, what was changed, and the citation."""
    found = summary["recipe"]
    changed = [f"no longer the published protocol: {'; '.join(found['changed'])}"] if found["changed"] else []
    fewer = [f"fewer trials, so the intervals are wider: {found['fewer_trials']}"] if found["fewer_trials"] else []
    errors = any(row.get("bootstrap_se") is not None for row in found["rows"])
    places = list(dict.fromkeys(place_words(environment) for environment in summary["environments"]))
    return [
        f"{found['title']} (recipe={found['name']} recipe_size={found['size']})",
        *changed,
        *fewer,
        f"what was measured: {found['measured']}; on {found['measured_on']}",
        f"what the recipe does: {found['protocol']}; here on {' and '.join(places) or 'nothing yet'}",
        *(
            ["\u00b1 after a measured sd is its bootstrap error (10,000 resamples); its interval decides"]
            if errors
            else []
        ),
        f"source: {found['citation']}",
    ]


def verdict_lines(summary: dict[str, Any]) -> list[str]:
    """For the terminal: a short line for each published figure; of very many, for those that could be compared."""
    found = summary.get("recipe")
    rows = found["rows"] if found else []
    shown = rows if len(rows) <= MOST_SHOWN else [row for row in rows if row["verdict"] in ("agrees", "differs")]
    rest = len(rows) - len(shown)
    more = f"{rest} published figures could not be compared, or are no targets: the report says why"
    return [*map(_short, shown), *([more] if rest else [])]


def _cells(row: Row) -> list[str]:
    claim = f"{row['claim']}: " if row["claim"] else ""
    published = f"{claim}{published_words(row)} ({row['source']})"
    return [row["quantity"].replace("_", " "), cell_words(row), published, measured_words(row), verdict_words(row)]


def _short(row: Row) -> str:
    measured = f"{measured_words(row)} here, " if row["measured"] is not None else ""
    what = f"{row['quantity'].replace('_', ' ')}, {cell_words(row)}"
    return f"{what}: {measured}{published_words(row)} published: {row['verdict']}"


def cell_words(row: Row) -> str:
    """The words that select a cell, and the one that it is compared with."""
    own, other = (" ".join(f"{key}={_word(value)}" for key, value in row[name].items()) for name in ("cell", "over"))
    return f"{own or 'all'} over {other}" if other else own or "all"


def _word(value: Any) -> str:
    """A value as the command line takes it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def published_words(row: Row) -> str:
    """The published value with its uncertainty and unit; what nobody read has no figure."""
    value, unit = row["value"], _unit(row)
    if not row["read"]:
        return "not read, so no figure"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"{value[0]:g} to {value[1]:g}{unit}"
    uncertainty = f" \u00b1 {row['uncertainty']:g}" if row["uncertainty"] else ""
    over = f", {_trials(row['trials'])}" if row["trials"] else ""
    return f"{value:g}{uncertainty}{unit}{over}"


def measured_words(row: Row) -> str:
    """The measured value with its interval and the number of trials; a dash where there is none."""
    value = row["measured"]
    if value is None:
        return NONE
    over = f", {_trials(row['measured_trials'])}"
    if isinstance(value, str):
        note = f" ({row['note']})" if row.get("note") else ""
        return f"{value}{note}{over}"
    error = f" \u00b1 {number(row['bootstrap_se'])}" if row.get("bootstrap_se") is not None else ""
    return f"{_figure(value, row)}{error}{_unit(row)}{_interval(row['ci95'], row)}{over}"


def _trials(count: int) -> str:
    return f"{count} trial" if count == 1 else f"{count} trials"


def verdict_words(row: Row) -> str:
    """The verdict, and why it is none where it is none."""
    return f"{row['verdict']}, because {row['why']}" if row["verdict"] == "not comparable" else str(row["verdict"])


def _figure(value: float, row: Row) -> str:
    if row["unit"] == "1" and abs(value) < 1e-3:
        return f"{value:.2g}"  # so small a share means nothing in decimals
    if row["unit"] == "ulp":
        return f"{value:,.0f}"
    return f"{value:.3f}" if row["unit"] == "ratio" else number(value)


def _interval(interval: Sequence[float] | None, row: Row) -> str:
    return f" [{', '.join(_figure(end, row) for end in interval)}]" if interval else ""


def _unit(row: Row) -> str:
    return f" {row['unit']}" if row["unit"] in ("%", "s", "ms", "nats", "ulp") else ""


def place_words(environment: dict[str, Any]) -> str:
    """The device and the versions of torch, CUDA and cuDNN."""
    device = environment["gpu_name"] or environment.get("cpu") or environment["device"]
    versions = [f"{name} {environment[name]}" for name in ("torch", "cuda", "cudnn") if environment.get(name)]
    return ", ".join([str(device), *versions])
