"""One MLflow run for each trial: its settings, its curves and its final figures."""

import math
from collections import defaultdict
from dataclasses import asdict

import numpy as np
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner.cell import flatten
from runner.claim import claim_of
from runner.errors import StudyError
from runner.mode import mode_name
from runner.record import Record
from runner.series import Series
from runner.study import Study
from runner.tracking.names import cut, params
from runner.tracking.runs import LABEL_LIMIT, CellRun, Points, StudyRuns, create, identity, send, set_tags, tagged
from runner.tracking.states import KILLED, RUNNING, milliseconds, set_state, trial_state
from runner.tracking.store import search

CURVE_POINTS = 1000
# The levels of the runs of all attempts at a trial, "trial" and "retried trial".
ATTEMPTS = "tags.level LIKE '%trial'"


def send_trial(runs: StudyRuns, study: Study, record: Record) -> None:
    """Show a trial under its cell; a trial that is there completely is left alone. To be called while `writing`.

    The run is FINISHED only if the training was complete with finite results, KILLED if it was interrupted, else
    FAILED; the tags `outcome` and `reason` say more. Of a trial that was done again the earlier runs keep their
    figures under the level "retried trial".
    """
    found_by = {"study": runs.study, "cell": record.cell, "trial": str(record.number)}
    found = search(runs.client, [runs.cells[record.cell].experiment], f"{tagged(found_by)} and {ATTEMPTS}")
    _send(runs, study, record, found)


def send_missing(runs: StudyRuns, study: Study, records: list[Record]) -> None:
    """Show all trials that the store does not have yet, found out by one search. To be called while `writing`."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in search(runs.client, runs.experiments(), f"{tagged({'study': runs.study})} and {ATTEMPTS}"):
        found[run.data.tags["cell"], run.data.tags["trial"]].append(run)
    for record in records:
        _send(runs, study, record, found[record.cell, str(record.number)])


def _send(runs: StudyRuns, study: Study, record: Record, attempts: list[Run]) -> None:
    if _outdated(study, record, attempts):
        return
    run = _told_apart(runs.client, record, attempts)
    there = run and (run.info.status, run.info.end_time)
    if there == (trial_state(record), milliseconds(record.ended)):
        return
    place = runs.cells[record.cell]
    points, lost = figures(record, _series(study, record), timed=place.cell.probe == "none")
    run = run or _create(runs, place, record, lost)
    settings = params(flatten(place.cell.config) | flatten(record.flags.get("after", {}), "effective."))
    send(runs.client, run.info.run_id, milliseconds(record.ended), points, settings)
    set_state(runs.client, run.info.run_id, trial_state(record), [record])


def _series(study: Study, record: Record) -> Series | None:
    """A damaged one costs the trial its curves, not the others theirs."""
    try:
        return study.series(record)
    except StudyError:
        return None


def _outdated(study: Study, record: Record, attempts: list[Run]) -> bool:
    """Whether the trial was done again since the record was read; the folder knows which attempt counts."""
    if all(_claim(run) == claim(record) for run in attempts):
        return False
    counting = claim_of(study.trial_folder(record.cell, record.number))
    return counting is not None and counting.name != claim(record)


def _told_apart(client: MlflowClient, record: Record, attempts: list[Run]) -> Run | None:
    """The run of the record, if there is one; those of other attempts step back, so that each trial is found once."""
    own = [run for run in attempts if _claim(run) == claim(record)]
    for run in attempts:
        level = "trial" if run in own else "retried trial"
        if run not in own and run.info.status == RUNNING:
            client.set_terminated(run.info.run_id, KILLED)
        if run.data.tags["level"] != level:
            set_tags(client, run.info.run_id, {"level": level})
    return own[0] if own else None


def _create(runs: StudyRuns, place: CellRun, record: Record, lost: list[str]) -> Run:
    tags = identity(runs.study, record.cell, record.number) | {
        "mode": mode_name(place.cell.config["cudnn"]),
        "outcome": record.outcome,
        "mlflow.parentRunId": place.run,
        **({"claim": claim(record)} if claim(record) else {}),
        **({"reason": record.reason} if record.reason else {}),
        **({"non_finite": ", ".join(lost)} if lost else {}),
    }
    name = f"{cut(place.label, LABEL_LIMIT)} #{record.number}"
    return create(runs.client, place.experiment, name, tags, [record])


def claim(record: Record) -> str:
    """The name of the attempt; records from before there were any have none."""
    return str(record.process.get("claim") or "")


def _claim(run: Run) -> str:
    return str(run.data.tags.get("claim", ""))


def figures(record: Record, series: Series | None, timed: bool = True) -> tuple[Points, list[str]]:
    """All figures of a trial by name and step, and the names of those that were not finite somewhere.

    Steps count from 1. Values that are no finite numbers are left out: MLflow would store the largest number instead.
    Without `timed` so are speed and memory, which a probe has changed.
    """
    values = _curves(series, timed) if series else {}
    last = record.speed.steps if record.speed else 0
    values |= {(f"test/{name}", last): math.nan if value is None else value for name, value in record.metrics.items()}
    values |= {(name, last): value for name, value in _finals(record).items() if timed}
    points = {key: float(value) for key, value in values.items() if math.isfinite(value)}
    return points, sorted({name for name, step in values.keys() - points.keys()})


def _curves(series: Series, timed: bool) -> Points:
    points: Points = {}
    for name, values in (("train/loss", series.loss), *([("train/step_ms", series.step_ms)] if timed else [])):
        points |= {(name, int(i) + 1): float(values[i]) for i in _spread(len(values))}
    for name, values in zip(series.evaluation_names, series.evaluations.T, strict=True):
        points |= {(f"test/{name}", int(series.evaluated[i])): float(values[i]) for i in _spread(len(values))}
    return points


def _spread(count: int) -> np.ndarray:
    """Indices of at most CURVE_POINTS of `count` points, evenly spread, the first and the last among them."""
    return np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(int)


def _finals(record: Record) -> dict[str, float]:
    """The figures of the whole trial with units in their names; what could not be measured is left out."""
    speed = asdict(record.speed) if record.speed else {}
    figures = {name: value for name, value in speed.items() if isinstance(value, int | float) and name != "steps"}
    if speed.get("new_shapes_ms"):
        figures["new_shapes_total_ms"] = sum(speed["new_shapes_ms"])
    return figures | {name: value for name, value in record.memory.items() if value is not None}
