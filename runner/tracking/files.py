"""The report's files with the run of a study, and every cell's settings with its run."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from runner.study import Study
from runner.tracking.runs import StudyRuns

HERE = {"localhost", "127.0.0.1", "::1"}


def send_files(runs: StudyRuns, study: Study, step: Callable[[], object] = lambda: None) -> None:
    """Store the files that are there now, replacing those of the same name. To be called while `writing`.

    Calls `step` after each of them. Raises OSError, or MLflow's own error, where a store takes runs but no files.
    """
    for experiment in runs.experiments():
        _check_place(runs.client.tracking_uri, str(runs.client.get_experiment(experiment).artifact_location))
    for place in runs.cells.values():
        runs.client.log_dict(place.run, place.cell.config, "cell.json")
        step()
    for parent in dict.fromkeys(place.parent for place in runs.cells.values()):
        for path in study.report_files():
            folder = path.parent.relative_to(study.folder)
            runs.client.log_artifact(parent, str(path), str(folder) if folder.name else None)
            step()


def _check_place(uri: str, location: str) -> None:
    """Raises OSError for a server that has files written into its own folder, and is on another machine.

    MLflow would make a folder of that name on this one, where nobody looks for it.
    """
    place, host = urlsplit(location), urlsplit(uri).hostname
    if not uri.startswith("http") or place.scheme not in ("", "file") or host in HERE:
        return
    root = Path(url2pathname(place.path)).parent
    if not root.is_dir():
        raise OSError(f"the server does not take files itself, and its folder {root} is not on this machine")
