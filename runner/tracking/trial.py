"""One MLflow run for each trial: its settings, its curves, its final figures and the state of its machine."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mlflow.entities import Metric, Run
from mlflow.tracking import MlflowClient

from runner.cell import flatten
from runner.claim import claim_of
from runner.errors import StudyError
from runner.mode import mode_name
from runner.record import Record
from runner.series import Series
from runner.study import Study
from runner.tracking.names import clean, params
from runner.tracking.runs import CellRun, StudyRuns, create, identity, tagged, the_only
from runner.tracking.sending import Points, at, datasets, log_datasets, send, set_tags
from runner.tracking.states import KILLED, RUNNING, milliseconds, set_state, trial_state
from runner.tracking.store import search

CURVE_POINTS = 1000
# The levels of the runs of all attempts at a trial, "trial" and "retried trial".
ATTEMPTS = "tags.level LIKE '%trial'"


@dataclass(frozen=True)
class Shown:
    """What is there of an attempt at a trial. Of a complete run no more than that is kept: they are many."""

    run: str
    level: str
    claim: str
    ended: tuple[str, int | None]
    half: Run | None

    @classmethod
    def of(cls, run: Run) -> "Shown":
        """What a search found."""
        tags, ended = run.data.tags, (run.info.status, run.info.end_time)
        half = run if run.info.status == RUNNING else None
        return cls(run.info.run_id, tags["level"], str(tags.get("claim", "")), ended, half)


def send_trial(runs: StudyRuns, study: Study, record: Record) -> None:
    """Show a trial under its cell; a trial that is there completely is left alone. To be called while `writing`.

    The run is FINISHED only if the training was complete with finite results, KILLED if it was interrupted, else
    FAILED; the tags `outcome` and `reason` say more. Of a trial that was done again the earlier runs keep their
    figures under the level "retried trial".
    """
    found_by = {"study": runs.study, "cell": record.cell, "trial": str(record.number)}
    found = search(runs.client, [runs.cells[record.cell].experiment], f"{tagged(found_by)} and {ATTEMPTS}")
    _send(runs, study, record, list(map(Shown.of, found)))


def send_missing(
    runs: StudyRuns, study: Study, records: Iterable[Record], step: Callable[[], object] = lambda: None
) -> int:
    """Show all trials that the store does not have yet, found out by one search. To be called while `writing`.

    Calls `step` after each trial. Returns how many were sent.
    """
    found: dict[tuple[str, str], list[Shown]] = defaultdict(list)
    for run in search(runs.client, runs.experiments(), f"{tagged({'study': runs.study})} and {ATTEMPTS}"):
        found[run.data.tags["cell"], run.data.tags["trial"]].append(Shown.of(run))
    sent = 0
    for record in records:
        sent += _send(runs, study, record, found[record.cell, str(record.number)])
        step()
    return sent


def _send(runs: StudyRuns, study: Study, record: Record, attempts: list[Shown]) -> bool:
    """Whether there was anything to send."""
    if _outdated(study, record, attempts):
        return False
    shown = _told_apart(runs.client, record, attempts)
    if shown and shown.ended == (trial_state(record), milliseconds(record.ended)):
        return False
    place, client = runs.cells[record.cell], runs.client
    points, lost = figures(record, _series(study, record), timed=place.cell.probe == "none")
    run = shown.run if shown else _create(runs, place, record, lost)
    metrics = at(milliseconds(record.ended), points) + system_metrics(record)
    settings = params(flatten(place.cell.config) | flatten(record.flags.get("after", {}), "effective."))
    send(client, run, metrics, _without(settings, shown.half if shown else None))
    log_datasets(client, run, datasets([record], place.cell.config["dataset"], context_of(place.cell.phase)))
    set_state(client, run, trial_state(record), [record])
    return True


def _without(settings: dict[str, str], half: Run | None) -> dict[str, str]:
    """What a run has not got yet: MLflow refuses a param in another form, as a later version might write it."""
    return {key: value for key, value in settings.items() if half is None or key not in half.data.params}


def context_of(phase: str) -> str:
    """What a phase uses its data for, in MLflow's words."""
    return "evaluation" if phase == "infer" else "training"


def _series(study: Study, record: Record) -> Series | None:
    """A damaged one costs the trial its curves, not the others theirs."""
    try:
        return study.series(record)
    except StudyError:
        return None


def _outdated(study: Study, record: Record, attempts: list[Shown]) -> bool:
    """Whether the trial was done again since the record was read; the folder knows which attempt counts."""
    if all(shown.claim == claim(record) for shown in attempts):
        return False
    counting = claim_of(study.trial_folder(record.cell, record.number))
    return counting is not None and counting.name != claim(record)


def _told_apart(client: MlflowClient, record: Record, attempts: list[Shown]) -> Shown | None:
    """The run of the record, if there is one; those of other attempts step back, so that each trial is found once."""
    own = [shown for shown in attempts if shown.claim == claim(record)]
    if len(own) > 1:  # rarely: it costs a request each
        kept = the_only(client, [client.get_run(shown.run) for shown in own])
        attempts = [shown for shown in attempts if shown not in own or (kept and shown.run == kept.info.run_id)]
        own = [shown for shown in own if shown in attempts]
    for shown in attempts:
        level = "trial" if shown in own else "retried trial"
        if shown not in own and shown.half:
            client.set_terminated(shown.run, KILLED)
        if shown.level != level:
            set_tags(client, shown.run, {"level": level})
    return own[0] if own else None


def _create(runs: StudyRuns, place: CellRun, record: Record, lost: list[str]) -> str:
    tags = identity(runs.study, record.cell, record.number) | {
        "round": str(record.number),
        "mode": mode_name(place.cell.config["cudnn"]),
        "outcome": record.outcome,
        "mlflow.parentRunId": place.run,
        **({"claim": claim(record)} if claim(record) else {}),
        **({"reason": record.reason} if record.reason else {}),
        **({"non_finite": ", ".join(lost)} if lost else {}),
    }
    name = f"#{record.number} {place.label}"  # lists show the beginning of a name
    return str(create(runs.client, place.experiment, name, tags, [record]).info.run_id)


def claim(record: Record) -> str:
    """The name of the attempt; records from before there were any have none."""
    return str(record.process.get("claim") or "")


def figures(record: Record, series: Series | None, timed: bool = True) -> tuple[Points, list[str]]:
    """All figures of a trial by name and step, and the names of those that were not finite somewhere.

    Steps count from 1. Values that are no finite numbers are left out: MLflow would store the largest number instead.
    Without `timed` so are speed and memory, which a probe has changed.
    """
    values = _curves(series, timed) if series else {}
    last = _steps(record)
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


def system_metrics(record: Record) -> list[Metric]:
    """The state of the machine just before the first step and just after the last, for the page of system metrics.

    From the record: MLflow's own monitor reads from a thread beside the training, whose times it would change.
    """
    moments = {"before": (milliseconds(record.started), 0), "after": (milliseconds(record.ended), _steps(record))}
    metrics = []
    for when, (moment, step) in moments.items():
        for name, value in record.covariates.get(when, {}).items():
            if _is_number(value):
                metrics.append(Metric(clean(f"system/{name}"), float(value), moment, step))  # type: ignore[arg-type]
    return metrics


def _steps(record: Record) -> int:
    return record.speed.steps if record.speed else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
