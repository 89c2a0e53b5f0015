"""summary.csv: the summary as a table, one row a cell, for spreadsheets and data frames."""

import csv
import io
from typing import Any

from runner.cell import flatten


def sheet(summary: dict[str, Any]) -> str:
    """The CSV text: dotted names as in summary.json, an interval as two columns, what is unknown left empty."""
    lines = [_row(cell) for cell in summary["cells"]]
    names = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _row(cell: dict[str, Any]) -> dict[str, Any]:
    first = {key: value for key, value in cell.items() if key not in ("config", "unfinished")}
    row: dict[str, Any] = {}
    for name, value in flatten(first | {"config": cell["config"]}).items():
        if name.split(".")[-1].endswith("ci95"):
            row |= dict(zip((f"{name}.low", f"{name}.high"), value or (None, None), strict=True))
        else:
            row[name] = "; ".join(map(_item, value)) if isinstance(value, (list, tuple)) else value
    return {name: value for name, value in row.items() if value != {}}


def _item(value: Any) -> str:
    return " ".join(f"{key}={part}" for key, part in value.items()) if isinstance(value, dict) else str(value)
