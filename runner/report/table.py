"""The tables of a study as rows of text cells, for terminals and Markdown alike."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.report.number import NONE, memory, number
from runner.report.words import figure_words, phase_of, ratio_words, step_words, tuning_words, verdict_words

Cell = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: its name, its text for a cell, and the phase of the cells that have it, None for all."""

    name: str
    words: Callable[[Cell], str]
    phase: str | None = None

    def text(self, cell: Cell) -> str:
        """The text for a cell, a dash if its phase has no such figure."""
        return self.words(cell) if self.phase in (None, phase_of(cell)) else NONE


def header(summary: dict[str, Any]) -> list[str]:
    """The names of the columns of the table."""
    return [column.name for column in _columns(summary)]


def rows(summary: dict[str, Any]) -> list[list[str]]:
    """One row a cell, in the study's order."""
    columns = _columns(summary)
    return [[column.text(cell) for column in columns] for cell in summary["cells"]]


def more_figures(summary: dict[str, Any]) -> list[list[str]]:
    """The header and the rows of the second table, without the columns that are empty for all cells."""
    cells = summary["cells"]
    columns = [
        column for column in [*MORE, *_other_metrics(summary)] if any(column.text(cell) != NONE for cell in cells)
    ]
    lines = [[cell["label"], *(column.text(cell) for column in columns)] for cell in cells]
    return [["mode", *(column.name for column in columns)], *lines] if columns else []


def _other_metrics(summary: dict[str, Any]) -> list[Column]:
    """The figures of the evaluation that have no place in the table, a user's own among them."""
    names = {name for cell in summary["cells"] for name in cell["metrics"]} - {main_metric(summary)}
    return [Column(name, _metric(name)) for name in sorted(names)]


def _metric(name: str) -> Callable[[Cell], str]:
    return lambda cell: figure_words(cell["metrics"].get(name))


def _columns(summary: dict[str, Any]) -> list[Column]:
    metric, cells = main_metric(summary), summary["cells"]
    sizes = any((cell["speed"].get("shapes") or 1) > 1 for cell in cells)
    columns = [
        Column("mode", lambda cell: str(cell["label"])),
        Column("trials", trials_words),
        Column("step ms", step_words, "train"),
        Column("latency ms", step_words, "infer"),
        Column("call ms", step_words, "calls"),
        *([Column("p99 ms", _speed("p99_ms"), "infer")] if has_p99(summary) else []),
        Column("samples/s", _speed("samples_per_s"), "infer"),
        *([Column("all steps s", _speed("steps_s"))] if sizes else []),
        Column("step time / default's", lambda cell: _ratio(cell, summary), "train"),
        Column("latency / default's", lambda cell: _ratio(cell, summary), "infer"),
        Column("call time / default's", lambda cell: _ratio(cell, summary), "calls"),
        Column("tuning s", tuning_words),
        Column("peak memory", lambda cell: memory(cell["speed"]["peak_memory_bytes"])),
        *([Column(metric, _metric(metric))] if metric else []),
        Column("distinct weights", _distinct, "train"),
        Column("distinct outputs", _distinct, "infer"),
        Column("distinct results", _distinct, "calls"),
        Column("repeats?", verdict_words),
    ]
    phases = {phase_of(cell) for cell in cells}
    return [column for column in columns if column.phase is None or column.phase in phases]


def _speed(name: str) -> Callable[[Cell], str]:
    return lambda cell: number(cell["speed"][name])


def _new_size(new_shape_ms: float | None) -> str:
    return number(new_shape_ms) if new_shape_ms is None or new_shape_ms > 0 else "0"  # less than nothing is noise


def has_p99(summary: dict[str, Any]) -> bool:
    """Whether any cell that answers had enough steps for a 99th percentile."""
    return any(phase_of(cell) == "infer" and cell["speed"]["p99_ms"] is not None for cell in summary["cells"])


def _ratio(cell: Cell, summary: dict[str, Any]) -> str:
    return ratio_words(cell, summary) if cell["n"] else NONE


def _distinct(cell: Cell) -> str:
    found = cell["reproducibility"]
    return f"{found['unique_weights']} of {found['trials']}" if cell["n"] else NONE


MORE = [
    Column("first step ms", _speed("first_step_ms")),
    Column("cold first step ms", _speed("cold_first_step_ms")),
    Column("new size ms", lambda cell: _new_size(cell["speed"]["new_shape_ms"])),
    Column("p99 ms", _speed("p99_ms"), "train"),
    Column("wait ms", _speed("wait_ms")),
    Column("enqueue ms", _speed("enqueue_ms")),
    Column("lag ms", _speed("lag_ms")),
    Column("samples/s", _speed("samples_per_s"), "train"),
    Column("evaluation samples/s", _speed("evaluate_samples_per_s")),
    Column("compile s", _speed("compile_s")),
    Column("J/sample", _speed("energy_j_per_sample")),
    Column("reserved memory", lambda cell: memory(cell["speed"]["peak_reserved_bytes"])),
    Column("largest / smallest step", _speed("spread")),
]


def trials_words(cell: Cell) -> str:
    """How many trials finished, how many ended otherwise, and how many are missing."""
    outcomes = Counter(trial["outcome"].replace("_", " ") for trial in cell["unfinished"])
    others = [f"{count} {outcome}" for outcome, count in sorted(outcomes.items())]
    missing = [f"{cell['missing']} missing"] if cell.get("missing") else []
    return ", ".join([str(cell["n"]), *others, *missing])


def main_metric(summary: dict[str, Any]) -> str | None:
    """The metric shown in the table: accuracy where there is one, else the first that is no loss."""
    names: Sequence[str] = sorted({name for cell in summary["cells"] for name in cell["metrics"]})
    return min(names, key=lambda name: (name != "accuracy", name.endswith("loss")), default=None)
