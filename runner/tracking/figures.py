"""What the summary says of cells and of the study as figures with units in their names."""

import math
from typing import Any

# MLflow's pages sort metrics by name: these stand together before all others, as params that differ do.
HEADLINE = "_"
_COSTS = ("autotune_s", "break_even_steps", "peak_memory_bytes")


def cell_figures(cell: dict[str, Any]) -> dict[str, float]:
    """The figures of one cell of a summary; names of those that answer the question begin with an underscore.

    Trials are counts, `..._ms` milliseconds, `..._s` seconds; `_step_ms` is the mean over trials, `_ratio_to_default`
    step time over step time; `..._sd` is a sample's, and missing for one trial; an interval gives `..._low_95` and
    `..._high_95`. Everything else stands under speed/, repeats/ and test/. With phase=infer outputs are compared
    instead of weights, and called so. Lists (plans, trials left out) stand in the report.
    """
    speed = {key.replace("ratio_to_baseline", "ratio_to_default"): value for key, value in cell["speed"].items()}
    groups = {"speed/": speed, "repeats/": _repeats(cell["reproducibility"]), "test/": cell["metrics"]}
    details = {name: value for prefix, group in groups.items() for name, value in _figures(group, prefix).items()}
    return _headline(cell, speed) | details


def _headline(cell: dict[str, Any], speed: dict[str, Any]) -> dict[str, float]:
    found, step = cell["reproducibility"], speed.get("step_ms") or {}
    subject = found.get("subject", "weights")
    values = {
        "trials_finished": cell["n"],
        "trials_failed": cell["failed"],
        "trials_diverged": cell["diverged"],
        "step_ms": step.get("mean"),
        "step_ms_sd": step.get("sd"),
        "ratio_to_default": speed["ratio_to_default"],
        **{name: speed.get(name) for name in _COSTS},
        f"distinct_{subject}": found.get("unique_weights"),
        **{f"{name}_{part}": figure[part] for name, figure in cell["metrics"].items() for part in ("mean", "sd")},
    }
    return _figures(values, HEADLINE)


def study_figures(summary: dict[str, Any]) -> dict[str, float]:
    """The headline of a study: counts, the least ratio of a mode to the default, and what each answer costs.

    A question without an answer has no figure, and so has each where settings are answered one by one.
    """
    cells = summary["cells"]
    ratios = [cell["speed"]["ratio_to_baseline"] for cell in cells]
    measured = [ratio["value"] for ratio in ratios if ratio["value"] is not None and not ratio.get("baseline")]
    figures: dict[str, Any] = {
        "cells": len(cells),
        "cells_bitwise": sum(cell["reproducibility"]["verdict"] == "bitwise" for cell in cells),
        "trials_finished": sum(cell["n"] for cell in cells),
        "trials_failed": sum(cell["failed"] for cell in cells),
        "trials_diverged": sum(cell["diverged"] for cell in cells),
        "lowest_ratio_to_default": min(measured, default=None),
    }
    answers = summary["recommendations"]
    for question in summary["recommendation"] if len(answers) == 1 else ():
        chosen = [cell for cell in cells if cell["cell"] == answers[0][question].get("cell")]
        for cell in chosen[:1]:
            step, ratio = cell["speed"]["step_ms"], cell["speed"]["ratio_to_baseline"]["value"]
            figures |= {f"{question}_step_ms": step and step["mean"], f"{question}_ratio_to_default": ratio}
    return _figures(figures, HEADLINE)


def _repeats(found: dict[str, Any]) -> dict[str, Any]:
    """What repeats under its names. Where outputs are compared nothing changes the weights: no distance is shown."""
    shown = {"trials_compared" if key == "trials" else key: value for key, value in found.items()}
    if found.get("subject", "weights") == "weights":
        return shown
    return {key.replace("weights", found["subject"]): value for key, value in shown.items() if "weight_l2" not in key}


def _figures(values: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """Nested figures under names joined with an underscore; what is no finite number is left out."""
    figures: dict[str, float] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            figures |= _figures(value, f"{name}_")
        elif key.endswith("ci95") and value:
            stem = name.removesuffix("ci95")
            figures |= _figures({f"{stem}low_95": value[0], f"{stem}high_95": value[1]})
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            figures[name.removesuffix("_value")] = float(value)
    return figures
