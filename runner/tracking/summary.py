"""The summary's figures on the runs of the cells, its headline on the run of the study."""

import math
import time
from typing import Any

from runner.cell import flatten
from runner.report.answer import answer_to, answers
from runner.report.markdown import bullets, table
from runner.report.sizes import sizes_words
from runner.report.words import verdict_words
from runner.study import Study
from runner.tracking.names import clean, params
from runner.tracking.runs import CellRun, Points, StudyRuns, send, set_states, set_tags


def send_summary(runs: StudyRuns, study: Study, summary: dict[str, Any], others: bool) -> None:
    """Show a summary (schema 1) and set the states of the runs of the study and of its cells, see `state`.

    `others` says whether other processes work on the study: then what is not complete goes on. After more rounds the
    figures that changed are sent again. A param stays what it was first: MLflow does not change any. To be called
    while `writing`.
    """
    for place in runs.cells.values():
        _send_cell(runs, place, [one for one in summary["cells"] if one["cell"] == place.cell.id])
    for parent in dict.fromkeys(place.parent for place in runs.cells.values()):
        below = [place.cell.id for place in runs.cells.values() if place.parent == parent]
        _send_study(runs, parent, study, _part(summary, below))
    set_states(runs, study, study.records(), working=others)


def _part(summary: dict[str, Any], cells: list[str]) -> dict[str, Any]:
    """What the summary says of some cells."""
    shown = [one for one in summary["cells"] if one["cell"] in cells]
    said = [one for one in summary["recommendations"] if set(one["cells"]) <= set(cells)]
    return {**summary, "cells": shown, "recommendations": said}


def _send_cell(runs: StudyRuns, place: CellRun, found: list[dict[str, Any]]) -> None:
    """Figures of different environments are never pooled: those of a further one have its id before their names."""
    figures: dict[str, float] = {}
    for index, one in enumerate(found):
        prefix = f"environment-{one.get('environment')}/" if index else ""
        figures |= {f"{prefix}{name}": value for name, value in cell_figures(one).items()}
    _send_changed(runs, place.run, figures, flatten(place.cell.config))
    if found:
        set_tags(runs.client, place.run, _cell_tags(found[0]))
    runs.client.log_dict(place.run, place.cell.config, "cell.json")


def _cell_tags(cell: dict[str, Any]) -> dict[str, str]:
    ratio = cell["speed"]["ratio_to_baseline"]
    tags = {
        "verdict": verdict_words(cell),
        "speed_verdict": "baseline" if ratio.get("baseline") else ratio["verdict"],
        "break_even": cell["speed"]["break_even_steps"],
        "environment": cell.get("environment"),
    }
    return {key: "unknown" if value is None else str(value) for key, value in tags.items()}


def _send_study(runs: StudyRuns, run: str, study: Study, summary: dict[str, Any]) -> None:
    counts = {"trials_finished": "n", "trials_failed": "failed", "trials_diverged": "diverged"}
    totals = {name: float(sum(cell[key] for cell in summary["cells"])) for name, key in counts.items()}
    _send_changed(runs, run, totals, flatten(study.asked()))
    set_tags(runs.client, run, _study_tags(summary))
    for path in (study.summary_json, study.summary_csv, study.report_markdown):
        if path.is_file():
            runs.client.log_artifact(run, str(path))


def _study_tags(summary: dict[str, Any]) -> dict[str, str]:
    """The answers, one a tag, and what the run's page says at its top: price of sizes, answers, table."""
    tags = {f"recommended_{question}": answer_to(question, summary) for question in summary["recommendation"]}
    lines = bullets([*sizes_words(summary), *answers(summary)])
    return tags | {"mlflow.note.content": f"{lines}\n\n{table(summary)}\n"}


def _send_changed(runs: StudyRuns, run: str, figures: dict[str, float], settings: dict[str, Any]) -> None:
    known = runs.client.get_run(run).data
    points: Points = {(name, 0): value for name, value in figures.items() if known.metrics.get(clean(name)) != value}
    new = {key: value for key, value in params(settings).items() if key not in known.params}
    send(runs.client, run, round(time.time() * 1000), points, new)


def cell_figures(cell: dict[str, Any]) -> dict[str, float]:
    """The figures of one cell of a summary with units in their names, as the compare page shows them.

    Trials are counts, `..._ms` milliseconds, `..._s` seconds; `ratio_to_default` is step time over step time; an
    interval gives `..._low_95` and `..._high_95`; evaluation metrics stand under test/. With phase=infer all
    outputs are compared: `weights` reads `outputs`. Lists (plans, trials left out) stand in the report.
    """
    counts = {"trials_finished": cell["n"], "trials_failed": cell["failed"], "trials_diverged": cell["diverged"]}
    speed = {key.replace("ratio_to_baseline", "ratio_to_default"): value for key, value in cell["speed"].items()}
    repeats = _repeats(cell["reproducibility"])
    return _figures(counts) | _figures(speed) | _figures(repeats) | _figures(cell["metrics"], "test/")


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
