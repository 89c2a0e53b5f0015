"""One MLflow run for each trial: its settings, its curves and its final figures."""

import math
from dataclasses import asdict

import numpy as np

from runner.cell import flatten
from runner.mode import mode_name
from runner.record import Record
from runner.series import Series
from runner.study import Study
from runner.tracking.names import params
from runner.tracking.runs import Points, StudyRuns, end, find_or_create, identity, milliseconds, send

CURVE_POINTS = 1000


def send_trial(runs: StudyRuns, study: Study, record: Record) -> None:
    """Show a trial under its cell; a trial that is there completely is left alone.

    The run is FINISHED only if the training was complete with finite results, KILLED if it was interrupted, else
    FAILED; the tags `outcome` and `reason` say more.
    """
    place = runs.cells[record.cell]
    points, lost = figures(record, study.series(record))
    tags = {
        "mode": mode_name(place.cell.config["cudnn"]),
        "outcome": record.outcome,
        "mlflow.parentRunId": place.run,
        **({"reason": record.reason} if record.reason else {}),
        **({"non_finite": ", ".join(lost)} if lost else {}),
    }
    name = f"{place.label} #{record.number}"
    found_by = identity(runs.study, record.cell, record.number)
    run = find_or_create(runs.client, place.experiment, found_by, name, tags, [record])
    if run.info.status != "RUNNING":
        return
    settings = params(flatten(place.cell.config) | flatten(record.flags.get("after", {}), "effective."))
    send(runs.client, run.info.run_id, milliseconds(record.ended), points, settings)
    end(runs.client, run.info.run_id, status(record), [record])


def status(record: Record) -> str:
    """MLflow's status for an outcome."""
    return {"finished": "FINISHED", "interrupted": "KILLED"}.get(record.outcome, "FAILED")


def figures(record: Record, series: Series | None) -> tuple[Points, list[str]]:
    """All figures of a trial by name and step, and the names of those that were not finite somewhere.

    Steps count from 1. Values that are no finite numbers are left out: MLflow would store the largest number instead.
    """
    values = _curves(series) if series else {}
    last = record.speed.steps if record.speed else 0
    values |= {(f"test/{name}", last): math.nan if value is None else value for name, value in record.metrics.items()}
    values |= {(name, last): value for name, value in _finals(record).items()}
    points = {key: float(value) for key, value in values.items() if math.isfinite(value)}
    return points, sorted({name for name, step in values.keys() - points.keys()})


def _curves(series: Series) -> Points:
    points: Points = {}
    for name, values in (("train/loss", series.loss), ("train/step_ms", series.step_ms)):
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
