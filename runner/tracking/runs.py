"""The MLflow runs of a study, found by their tags or created: one for the study, one for each cell."""

import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner.cell import Cell, labels
from runner.mode import mode_name
from runner.record import Record
from runner.study import Study
from runner.tracking import names
from runner.tracking.question import question
from runner.tracking.sending import set_tags
from runner.tracking.states import FINISHED, RUNNING, milliseconds, set_state, state
from runner.tracking.store import connect, experiment_name, open_experiment, search


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


def open_study(
    uri: str, study: Study, experiment: str | None = None, step: Callable[[], object] = lambda: None
) -> StudyRuns:
    """Find or create the runs of a study and of its cells; what is not complete runs from now on.

    A study over several models or data sets gets a study run in each experiment, unless `experiment` names one for
    all. Calls `step` after each run. To be called while `writing`. Raises ConfigError for a store or an experiment
    that cannot be used, see `check`.
    """
    client, cells, records = connect(uri), study.cells(), study.records()
    opened: dict[str, CellRun] = {}
    for name in dict.fromkeys(experiment_name(cell, experiment) for cell in cells):
        shown = [cell for cell in cells if experiment_name(cell, experiment) == name]
        for run in _cell_runs(client, study, open_experiment(client, name), shown, labels(cells), records):
            opened[run.cell.id] = run
            step()
    runs = StudyRuns(client, name_of(study), opened)
    set_states(runs, study, records, True, step)
    return runs


def _cell_runs(
    client: MlflowClient, study: Study, place: str, cells: list[Cell], texts: dict[str, str], records: list[Record]
) -> Iterator[CellRun]:
    """The runs of the cells that stand in one experiment, each when it is found or made."""
    name = name_of(study)
    parent = _study_run(client, study, place, question(cells, study.asked()["rounds"]), records)
    known: dict[str, list[Run]] = defaultdict(list)
    for run in search(client, [place], tagged({"level": "cell", "study": name})):
        known[run.data.tags["cell"]].append(run)
    for cell in cells:
        own = [record for record in records if record.cell == cell.id]
        tags = {"mode": mode_name(cell.config["cudnn"]), "mlflow.parentRunId": parent}
        found = the_only(client, known[cell.id])
        run = found or create(client, place, texts[cell.id], identity(name, cell.id) | tags, own)
        yield CellRun(cell, texts[cell.id], run.info.run_id, parent, place)


def _study_run(client: MlflowClient, study: Study, place: str, title: str, records: list[Record]) -> str:
    """The run of the study; where the study is now tells whether it still lives when its processes are gone."""
    found_by, title = identity(name_of(study)), names.line(title, names.NAME_LIMIT)
    found = the_only(client, list(search(client, [place], tagged(found_by))))
    run = found or create(client, place, title, found_by, records)
    if run.info.run_name != title:  # the study has become longer
        client.update_run(run.info.run_id, name=title)
    where = {"study_folder": str(study.folder.absolute()), "host": socket.gethostname()}
    if names.tags(where) == where:  # a folder under a name that is no text would be taken for gone
        set_tags(client, run.info.run_id, where)
    return str(run.info.run_id)


def the_only(client: MlflowClient, same: list[Run]) -> Run | None:
    """The run among those that stand for one thing; the others are removed.

    A request to create it whose answer was lost on the way may have been fulfilled all the same, also late.
    """
    same = sorted(same, key=lambda run: (run.info.status == RUNNING, -len(run.data.metrics), run.info.run_id))
    for run in same[1:]:
        client.delete_run(run.info.run_id)
    return same[0] if same else None


def set_states(runs: StudyRuns, study: Study, records: list[Record], working: bool, step: Callable[[], object]) -> None:
    """Set the states of the runs of cells and study anew, see `state` and `kept`. Calls `step` after each."""
    rounds, left = study.asked()["rounds"], kept(runs, study, records)
    for run, cells in runs.below().items():
        if run not in left:
            own = [record for record in records if record.cell in cells]
            set_state(runs.client, run, state(own, cells, rounds, working), own)
            step()


def kept(runs: StudyRuns, study: Study, records: Iterable[Record]) -> set[str]:
    """The runs above trials that are left alone: MLflow shows all these finished, the folder lacks some.

    It is a copy without them, or they were removed. With the run of the study stay those of all its cells: their ratios
    need the whole. One search a call, and none where the folder has all trials.
    """
    asked = {(cell, number) for cell in runs.cells for number in range(study.asked()["rounds"])}
    there = {(record.cell, record.number): record.complete for record in records}
    if asked <= there.keys():
        return set()
    wanted = f"{tagged({'study': runs.study, 'level': 'trial'})} and attributes.status = '{FINISHED}'"
    tags = [run.data.tags for run in search(runs.client, runs.experiments(), wanted)]
    finished = {place for place, complete in there.items() if complete}
    shown = {(one["cell"], int(one["trial"])) for one in tags} - there.keys()
    short = {cell for cell, _ in asked - there.keys()}
    open_cells = {cell for cell, _ in asked - finished - shown}
    left = {run for run, cells in runs.below().items() if short & {*cells} and not open_cells & {*cells}}
    return left | {place.run for place in runs.cells.values() if place.parent in left}


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
