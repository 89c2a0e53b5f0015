"""The MLflow runs of a study, found by their tags or created: one for the study, one for each cell."""

from dataclasses import dataclass
from datetime import datetime

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.tracking import MlflowClient

from runner.cell import Cell, labels, varying
from runner.mode import mode_name
from runner.record import Record
from runner.study import Study
from runner.tracking import names
from runner.tracking.store import connect, experiment_name, open_experiment

Points = dict[tuple[str, int], float]
# A batch may hold 1,000 entries in all, 100 of them params.
METRICS_A_BATCH, PARAMS_A_BATCH = 900, 100


@dataclass(frozen=True)
class CellRun:
    """A cell's run, the study's run above it and the experiment of both."""

    cell: Cell
    label: str
    run: str
    parent: str
    experiment: str


@dataclass(frozen=True)
class StudyRuns:
    """Where a study is shown: its id, the client, and the run of every cell by the cell's id."""

    client: MlflowClient
    study: str
    cells: dict[str, CellRun]


def open_study(uri: str, study: Study, experiment: str | None = None) -> StudyRuns:
    """Find or create the runs of a study and of its cells.

    A study over several models or data sets gets a study run in each experiment, unless `experiment` names one for
    all. Raises ConfigError for a store or an experiment that cannot be used, see `check`.
    """
    client = connect(uri)
    asked, cells, records = study.asked(), study.cells(), study.records()
    texts = labels(cells)
    opened: dict[str, CellRun] = {}
    for name in dict.fromkeys(experiment_name(cell, experiment) for cell in cells):
        place = open_experiment(client, name)
        shown = [cell for cell in cells if experiment_name(cell, experiment) == name]
        title = f"{_question(shown)} ({asked['id']})"
        parent = find_or_create(client, place, identity(asked["id"]), title, {}, records)
        for cell in shown:
            tags = {"mode": mode_name(cell.config["cudnn"]), "mlflow.parentRunId": parent.info.run_id}
            own = [record for record in records if record.cell == cell.id]
            run = find_or_create(client, place, identity(asked["id"], cell.id), texts[cell.id], tags, own)
            opened[cell.id] = CellRun(cell, texts[cell.id], run.info.run_id, parent.info.run_id, place)
    return StudyRuns(client, asked["id"], opened)


def _question(cells: list[Cell]) -> str:
    modes = {mode_name(cell.config["cudnn"]) for cell in cells}
    factors = ["mode"] * (len(modes) > 1) + [key.removesuffix(".name") for key in varying(cells)]
    return f"{', '.join(factors)} varied over {len(cells)} cells" if factors else "one cell"


def identity(study: str, cell: str | None = None, trial: int | None = None) -> dict[str, str]:
    """The tags by which a run is found again: those of the study, of a cell or of a trial."""
    given = {"study": study, "cell": cell, "trial": trial}
    tags = {key: str(value) for key, value in given.items() if value is not None}
    return {"level": list(tags)[-1], **tags}


def find_or_create(
    client: MlflowClient,
    experiment: str,
    found_by: dict[str, str],
    name: str,
    tags: dict[str, str],
    records: list[Record],
) -> Run:
    """The run with the tags `found_by`; if there is none, a new one that starts with the first of its records."""
    wanted = " and ".join(f"tags.{key} = {_quoted(value)}" for key, value in found_by.items())
    found = client.search_runs([experiment], wanted, max_results=1)
    if found:
        return found[0]
    start = min((milliseconds(record.started) for record in records), default=None)
    return client.create_run(experiment, start, names.tags({**found_by, **tags}), run_name=name)


def _quoted(value: str) -> str:
    quote = "'" if '"' in value else '"'
    return f"{quote}{value}{quote}"


def milliseconds(moment: str) -> int:
    """A record's point in time as MLflow counts it."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def end(client: MlflowClient, run: str, status: str, records: list[Record]) -> None:
    """Close a run at the end of the last of its records, so that closing it again changes nothing."""
    client.set_terminated(run, status, max((milliseconds(record.ended) for record in records), default=None))


def send(client: MlflowClient, run: str, moment: int, points: Points, settings: dict[str, str]) -> None:
    """Send metrics and params in batches. The same points at the same moment again are no new points."""
    metrics = [Metric(names.clean(name), value, moment, step) for (name, step), value in points.items()]
    params = [Param(key, value) for key, value in settings.items()]
    while metrics or params:
        client.log_batch(run, metrics[:METRICS_A_BATCH], params[:PARAMS_A_BATCH])
        metrics, params = metrics[METRICS_A_BATCH:], params[PARAMS_A_BATCH:]


def set_tags(client: MlflowClient, run: str, tags: dict[str, str]) -> None:
    """Set tags, replacing those of the same name."""
    client.log_batch(run, tags=[RunTag(key, value) for key, value in names.tags(tags).items()])
