"""What a killed process left behind in MLflow: runs that run although nobody works on them any more."""

import socket
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner.errors import StudyError
from runner.study import Study
from runner.tracking.runs import name_of, tagged
from runner.tracking.states import KILLED, RUNNING
from runner.tracking.store import connect, every_experiment, search
from runner.tracking.writing import writing


def end_leftovers(uri: str) -> None:
    """End as KILLED the runs of studies that nobody works on any more: their processes were killed.

    When they died is not known; the runs end now. A study that cannot be seen from here counts as alive. Where
    nothing runs, this is one search.
    """
    client = connect(uri)
    experiments, running = every_experiment(client), defaultdict(list)
    for run in search(client, experiments, f"attributes.status = '{RUNNING}' and tags.study != ''"):
        running[run.data.tags["study"]].append(run)
    for study, runs in running.items():
        above = [run for run in runs if run.data.tags.get("level") == "study"]
        for top in above or list(search(client, experiments, tagged({"level": "study", "study": study}))):
            _end_dead(client, top.data.tags, runs)


def _end_dead(client: MlflowClient, tags: dict[str, str], runs: list[Run]) -> None:
    if "study_folder" not in tags:  # made by an older version, or no study of ours
        return
    study = Study(Path(tags["study_folder"]))
    with suppress(OSError, StudyError):  # what cannot be looked into counts as alive, and so does who writes just now
        if _is_gone(study, tags["study"]):
            if tags["host"] == socket.gethostname():
                _end(client, runs)
        else:
            with writing(study, wait_s=0):
                if not study.owners():
                    _end(client, runs)


def _is_gone(study: Study, name: str) -> bool:
    """Whether the folder was removed, or another study made in its place."""
    try:
        study.folder.stat()
    except FileNotFoundError:
        return True
    return name_of(study) != name


def _end(client: MlflowClient, runs: list[Run]) -> None:
    for run in runs:
        # Again, because the study may have ended properly between the search and now.
        if client.get_run(run.info.run_id).info.status == RUNNING:
            client.set_terminated(run.info.run_id, KILLED)
