"""Calls in words: a module called many times in one process, from what summary.json holds."""

from typing import Any

from runner.report.number import NONE, number, number_and_sd

HEADER = [
    "mode",
    "first loop s",
    "again s",
    "until the device is done s",
    "call ms",
    "results in one process",
    "largest difference",
    "off float64",
    "through cuDNN",
]
HOW_TO_READ = (
    "The first loop has the process's first calls, by the host's clock around it, without waiting for the device and "
    "without warm-up: as people write it. Again is the same loop once more; until the device is done are both with the "
    "wait that was left out. A call is a warm one by the device's own clock. The largest difference is that between "
    "results of the same input in one process; off float64 is the relative distance from the same module in float64."
)


def call_rows(summary: dict[str, Any]) -> list[list[str]]:
    """The header and a row for each cell that calls; none in a study without such."""
    rows = [_row(cell) for cell in summary["cells"] if cell.get("calls")]
    return [HEADER, *rows] if rows else []


def call_lines(summary: dict[str, Any]) -> list[str]:
    """How to read the table, what the calls on each input shape took where there are several, and what is missing."""
    cells = [cell for cell in summary["cells"] if cell.get("calls")]
    reasons = dict.fromkeys(cell["calls"]["no_error"] for cell in cells if cell["calls"]["no_error"])
    unknown = [f"not compared with float64: {reason}" for reason in reasons]
    return [HOW_TO_READ, *map(shapes_words, filter(_has_shapes, cells)), *unknown] if cells else []


def shapes_words(cell: dict[str, Any]) -> str:
    """What the calls on each input shape took: "benchmark (F,T): 1x3x200x200 first 512 ms, later 0.31 ms; ..."."""
    shapes = [
        f"{one['shape']} first {number(one['first_ms'])} ms, then {number(one['call_ms'])} ms"
        for one in cell["calls"]["shapes"]
    ]
    return f"{cell['label']}: {'; '.join(shapes)}"


def _has_shapes(cell: dict[str, Any]) -> bool:
    return len(cell["calls"]["shapes"]) > 1


def _row(cell: dict[str, Any]) -> list[str]:
    calls = cell["calls"]
    cold, warm = (calls[name] for name in ("cold", "warm"))
    kinds = [("outputs", calls["outputs"]), *([("gradients", calls["gradients"])] if calls["gradients"] else [])]
    return [
        cell["label"],
        _seconds(cold["host_s"]),
        _seconds(warm["host_s"]),
        f"{_seconds(cold['done_s'])}; {_seconds(warm['done_s'])}",
        number(cell["speed"]["step_ms"]["mean"]) if cell["speed"]["step_ms"] else NONE,
        "; ".join(f"{kind} {distinct_words(found)}" for kind, found in kinds),
        "; ".join(f"{kind} {words}" for kind, found in kinds if (words := difference_words(found))) or NONE,
        "; ".join(f"{kind} {_small(found['float64_error']['mean'])}" for kind, found in kinds),
        NONE if calls["cudnn"] is None else ", ".join(calls["cudnn"]) or "nothing",
    ]


def distinct_words(found: dict[str, Any]) -> str:
    """How many results of one input there were in a process: "1 of 1,000" or "up to 37 of 1,000 (in 3 of 5 trials)"."""
    if found["distinct"] == 1:
        return f"1 of {found['calls']:,}"
    return f"up to {found['distinct']:,} of {found['calls']:,} (in {found['differing']} of {found['trials']} trials)"


def difference_words(found: dict[str, Any]) -> str:
    """How far results of one input lie apart, "" where all are equal: "3 ulp, 1.2e-07 relative"."""
    if found["distinct"] == 1 or found["max_ulp"] is None:
        return ""
    return f"{found['max_ulp']:,} ulp, {_small(found['relative'])} relative"


def _small(value: float | None) -> str:
    return NONE if value is None else f"{value:.2g}"


def _seconds(figure: dict[str, Any]) -> str:
    return number_and_sd(figure["mean"], figure["sd"], None)
