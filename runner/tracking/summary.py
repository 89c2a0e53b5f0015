"""The summary's figures on the runs of the cells, its headline on the run of the study."""

import time
from collections.abc import Callable
from typing import Any

from runner.cell import flatten, varying
from runner.mode import mode_text
from runner.record import Record
from runner.report.answer import answer_to, answers
from runner.report.markdown import bullets, table
from runner.report.sizes import sizes_words
from runner.report.words import bound_words, verdict_words
from runner.study import Study
from runner.tracking.figures import cell_figures, study_figures
from runner.tracking.names import clean, params
from runner.tracking.runs import CellRun, StudyRuns, kept, set_states
from runner.tracking.sending import Points, at, datasets, log_datasets, send, set_tags
from runner.tracking.trial import context_of

# Trials of varied seeds see data of their own: a cell's page lists no more.
DATASETS_LISTED = 5


def send_summary(
    runs: StudyRuns, study: Study, summary: dict[str, Any], others: bool, step: Callable[[], object] = lambda: None
) -> None:
    """Show a summary (schema 1) and set the states of the runs of the study and of its cells, see `state`.

    `others` says whether other processes work on the study: then what is not complete goes on. After more rounds the
    figures that changed are sent again. A param stays what it was first: MLflow does not change any. What is `kept`
    stays as it is. Calls `step` after each run. To be called while `writing`.
    """
    records, keys = study.records(), varying(study.cells())
    left = kept(runs, study, records)
    for place in runs.cells.values():
        if place.run not in left:
            _send_cell(runs, place, _part(summary, [place.cell.id]), keys, records)
            step()
    for parent in dict.fromkeys(place.parent for place in runs.cells.values() if place.parent not in left):
        places = [place for place in runs.cells.values() if place.parent == parent]
        _send_study(runs, places, study, _part(summary, [place.cell.id for place in places]), records)
        step()
    set_states(runs, study, records, others, step)


def _part(summary: dict[str, Any], cells: list[str]) -> dict[str, Any]:
    """What the summary says of some cells."""
    shown = [one for one in summary["cells"] if one["cell"] in cells]
    said = [one for one in summary["recommendations"] if set(one["cells"]) <= set(cells)]
    return {**summary, "cells": shown, "recommendations": said}


def _send_cell(runs: StudyRuns, place: CellRun, part: dict[str, Any], keys: list[str], records: list[Record]) -> None:
    """Figures of different environments are never pooled: those of a further one have its id before their names."""
    figures: dict[str, float] = {}
    for index, one in enumerate(part["cells"]):
        prefix = f"environment-{one.get('environment')}/" if index else ""
        figures |= {f"{prefix}{name}": value for name, value in cell_figures(one).items()}
    settings = flatten(place.cell.config)
    # MLflow's compare page sorts params by name, so what differs stands first; no param ever changes, hence the number.
    first = {f"_{key}": settings[key] for key in keys if key in settings}
    tags = {}
    if part["cells"]:
        one = part["cells"][0]
        tags = _cell_tags(one) | {"mlflow.note.content": _cell_note(runs, place, part)}
        first |= {"_mode": mode_text(place.cell.config["cudnn"]), f"_verdict_of_{one['n']}_trials": verdict_words(one)}
    _send_changed(runs, place.run, figures, first | settings)
    set_tags(runs.client, place.run, tags)
    _send_data(runs, place.run, [place], records)


def _cell_tags(cell: dict[str, Any]) -> dict[str, str]:
    ratio = cell["speed"]["ratio_to_baseline"]
    tags = {
        "verdict": verdict_words(cell),
        "speed_verdict": "baseline" if ratio.get("baseline") else ratio["verdict"],
        "break_even": cell["speed"]["break_even_steps"],
        "environment": cell.get("environment"),
    }
    return {key: "unknown" if value is None else str(value) for key, value in tags.items()}


def _cell_note(runs: StudyRuns, place: CellRun, part: dict[str, Any]) -> str:
    """What a cell's page says at its top: its row of the table, what repeats, where the whole report is."""
    said = [bound_words(cell) for cell in part["cells"] if cell["n"]]
    return f"{table(part)}\n\n{bullets(said)}\n\n{_where(place)}\n"


def _where(place: CellRun) -> str:
    """Where the report is, as a link within MLflow's own pages: their address is not known here."""
    folder = f"#/experiments/{place.experiment}/runs/{place.parent}/artifacts"
    return f"The whole report: [artifacts of the study's run]({folder})"


def _send_study(
    runs: StudyRuns, places: list[CellRun], study: Study, part: dict[str, Any], records: list[Record]
) -> None:
    run = places[0].parent
    _send_changed(runs, run, study_figures(part), flatten(study.asked()))
    tags = {f"recommended_{question}": answer_to(question, part) for question in part["recommendation"]}
    lines = bullets([*sizes_words(part), *answers(part)])
    note = f"{lines}\n\n{table(part)}\n\n{_where(places[0])}\n"
    set_tags(runs.client, run, tags | {"mlflow.note.content": note})
    _send_data(runs, run, places, records)


def _send_data(runs: StudyRuns, run: str, places: list[CellRun], records: list[Record]) -> None:
    """List the data of cells on a run, unless each of many trials had its own."""
    for place in places:
        own = [record for record in records if record.cell == place.cell.id]
        data = datasets(own, place.cell.config["dataset"], context_of(place.cell.phase))
        if len(data) <= DATASETS_LISTED:
            log_datasets(runs.client, run, data)


def _send_changed(runs: StudyRuns, run: str, figures: dict[str, float], settings: dict[str, Any]) -> None:
    known = runs.client.get_run(run).data
    points: Points = {(name, 0): value for name, value in figures.items() if known.metrics.get(clean(name)) != value}
    new = {key: value for key, value in params(settings).items() if key not in known.params}
    send(runs.client, run, at(round(time.time() * 1000), points), new)
