"""Whether the trials of each cell repeat, and how far apart they end up, in words."""

from typing import Any

from runner.report.table import main_metric
from runner.report.words import bound_words, spread_words


def repeatability(summary: dict[str, Any]) -> list[str]:
    """A line for each cell of two trials and more, then how far the main metric spreads beside the default's."""
    lines, metric = [], main_metric(summary)
    for cell in summary["cells"]:
        found = cell["reproducibility"]
        if found["verdict"] in (None, "single"):
            continue
        where = [] if found["verdict"] == "bitwise" else [found["sentence"]]
        parts = [*where, bound_words(cell), *spread_words(cell, metric)]
        lines.append(f"{cell['label']}: {'; '.join(parts)}")
    return [*lines, *_spreads_beside(summary)]


def _spreads_beside(summary: dict[str, Any]) -> list[str]:
    """How far the main metric spreads beside the default's, if it does; one line where no cell can be told from it."""
    metric, names = main_metric(summary), {cell["cell"]: cell["label"] for cell in summary["cells"]}
    spreads = any(cell["metrics"][metric]["sd"] for cell in summary["cells"] if metric in cell["metrics"])
    found = [one for one in summary["modes_noise"] if one["metric"] == metric] if spreads else []
    said, words = f"sd of {metric} beside the default's", {one["words"] for one in found}
    if len(words) == 1 and found[0]["ratio"] is None:
        return [f"{said}: {words.pop()}"]
    return [f"{names[one['cell']]}: {said}: {one['words']}" for one in found]
