"""The MLflow runs of a study, found by their tags or created: one for the study, one for each cell."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.tracking import MlflowClient

from runner.cell import Cell, labels, varying
from runner.mode import mode_name
from runner.record import Record
from runner.study import Study
from runner.tracking import names
from runner.tracking.states import milliseconds, set_state, state
from runner.tracking.store import connect, experiment_name, open_experiment, search

Points = dict[tuple[str, int], float]
# A batch may hold 1,000 entries in all, 100 of them params.
METRICS_A_BATCH, PARAMS_A_BATCH = 900, 100
# What may vary in a name can be long; what tells runs apart stands behind it and has to be seen.
QUESTION_LIMIT, LABEL_LIMIT = 120, 230


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
    """Where a study is shown: its name there, the client, and the run of every cell by the cell's id."""

    client: MlflowClient
    study: str
    cells: dict[str, CellRun]

    def below(self) -> dict[str, list[str]]:
        """The runs of the cells, then those of the study, each with the ids of the cells that it speaks of."""
        places = self.cells.values()
        parents = dict.fromkeys(place.parent for place in places)
        own = {parent: [place.cell.id for place in places if place.parent == parent] for parent in parents}
        return {place.run: [place.cell.id] for place in places} | own

    def experiments(self) -> list[str]:
        """The experiments in which the study is shown."""
        return list(dict.fromkeys(place.experiment for place in self.cells.values()))


def open_study(uri: str, study: Study, experiment: str | None = None) -> StudyRuns:
    """Find or create the runs of a study and of its cells; what is not complete runs from now on.

    A study over several models or data sets gets a study run in each experiment, unless `experiment` names one for
    all. To be called while `writing`. Raises ConfigError for a store or an experiment that cannot be used, see `check`.
    """
    client, cells, records = connect(uri), study.cells(), study.records()
    opened: dict[str, CellRun] = {}
    for name in dict.fromkeys(experiment_name(cell, experiment) for cell in cells):
        shown = [cell for cell in cells if experiment_name(cell, experiment) == name]
        opened |= _open_part(client, study, open_experiment(client, name), shown, labels(cells), records)
    runs = StudyRuns(client, name_of(study), opened)
    set_states(runs, study, records, working=True)
    return runs


def _open_part(
    client: MlflowClient, study: Study, place: str, cells: list[Cell], texts: dict[str, str], records: list[Record]
) -> dict[str, CellRun]:
    """The runs of the cells that stand in one experiment."""
    name, opened = name_of(study), {}
    parent = _study_run(client, study, place, f"{_question(cells)} ({study.asked()['id']})", records)
    known = {run.data.tags["cell"]: run for run in search(client, [place], tagged({"level": "cell", "study": name}))}
    for cell in cells:
        own = [record for record in records if record.cell == cell.id]
        tags = {"mode": mode_name(cell.config["cudnn"]), "mlflow.parentRunId": parent}
        run = known.get(cell.id) or create(client, place, texts[cell.id], identity(name, cell.id) | tags, own)
        opened[cell.id] = CellRun(cell, texts[cell.id], run.info.run_id, parent, place)
    return opened


def _study_run(client: MlflowClient, study: Study, place: str, title: str, records: list[Record]) -> str:
    """The run of the study; where the study is now tells whether it still lives when its processes are gone."""
    found_by = identity(name_of(study))
    found = search(client, [place], tagged(found_by))
    run = found[0] if found else create(client, place, title, found_by, records)
    where = {"study_folder": str(study.folder.absolute()), "host": socket.gethostname()}
    if names.tags(where) == where:  # a folder under a name that is no text would be taken for gone
        set_tags(client, run.info.run_id, where)
    return str(run.info.run_id)


def _question(cells: list[Cell]) -> str:
    modes = {mode_name(cell.config["cudnn"]) for cell in cells}
    factors = ["mode"] * (len(modes) > 1) + [key.removesuffix(".name") for key in varying(cells)]
    varied = names.cut(", ".join(factors), QUESTION_LIMIT)
    return f"{varied} varied over {len(cells)} cells" if factors else "one cell"


def set_states(runs: StudyRuns, study: Study, records: list[Record], working: bool) -> None:
    """Set the states of the runs of the cells and of the study anew, see `state`."""
    rounds = study.asked()["rounds"]
    for run, cells in runs.below().items():
        own = [record for record in records if record.cell in cells]
        set_state(runs.client, run, state(own, cells, rounds, working), own)


def name_of(study: Study) -> str:
    """The study's id in the form in which a search finds it."""
    return names.title(study.asked()["id"])


def identity(study: str, cell: str | None = None, trial: int | None = None) -> dict[str, str]:
    """The tags by which a run is found again: those of the study, of a cell or of a trial."""
    given = {"study": study, "cell": cell, "trial": trial}
    tags = {key: str(value) for key, value in given.items() if value is not None}
    return {"level": list(tags)[-1], **tags}


def tagged(tags: dict[str, str]) -> str:
    """The search for runs with these tags."""
    return " and ".join(f"tags.{key} = {_quoted(value)}" for key, value in tags.items())


def _quoted(value: str) -> str:
    quote = "'" if '"' in value else '"'
    return f"{quote}{value}{quote}"


def create(client: MlflowClient, experiment: str, name: str, tags: dict[str, str], records: Iterable[Record]) -> Run:
    """A new run that starts with the first of its records."""
    start = min((milliseconds(record.started) for record in records), default=None)
    return client.create_run(experiment, start, names.tags(tags), run_name=names.line(name, names.NAME_LIMIT))


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
