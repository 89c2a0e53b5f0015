"""The table of a study as rows of text cells, for terminals and Markdown alike."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from runner.report.number import NONE, memory, number_and_sd
from runner.report.words import ratio_words, tuning_words, verdict_words


def header(summary: dict[str, Any]) -> list[str]:
    """The names of the columns."""
    metric = main_metric(summary)
    return [
        "mode",
        "trials",
        "step ms",
        "step time / default's",
        "tuning s",
        "peak memory",
        *([metric] if metric else []),
        "distinct weights",
        "repeats?",
    ]


def rows(summary: dict[str, Any]) -> list[list[str]]:
    """One row a cell, in the study's order."""
    return [_row(cell, summary) for cell in summary["cells"]]


def _row(cell: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    speed, found, metric = cell["speed"], cell["reproducibility"], main_metric(summary)
    return [
        cell["label"],
        trials_words(cell),
        _figure(speed["step_ms"]),
        ratio_words(cell, summary) if cell["n"] else NONE,
        tuning_words(cell),
        memory(speed["peak_memory_bytes"]),
        *([_figure(cell["metrics"].get(metric))] if metric else []),
        f"{found['unique_weights']} of {found['trials']}" if cell["n"] else NONE,
        verdict_words(cell),
    ]


def trials_words(cell: dict[str, Any]) -> str:
    """How many trials finished, how many ended otherwise, and how many are missing."""
    outcomes = Counter(trial["outcome"].replace("_", " ") for trial in cell["unfinished"])
    others = [f"{count} {outcome}" for outcome, count in sorted(outcomes.items())]
    missing = [f"{cell['missing']} missing"] if cell["missing"] else []
    return ", ".join([str(cell["n"]), *others, *missing])


def main_metric(summary: dict[str, Any]) -> str | None:
    """The metric shown in the table: accuracy where there is one, else the first that is no loss."""
    names: Sequence[str] = sorted({name for cell in summary["cells"] for name in cell["metrics"]})
    return min(names, key=lambda name: (name != "accuracy", name.endswith("loss")), default=None)


def _figure(figure: dict[str, Any] | None) -> str:
    return number_and_sd(figure["mean"], figure["sd"], figure["ci95"]) if figure else NONE
