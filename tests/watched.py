"""A study that is only shown: `python watched.py FOLDER`, for the tests of what stands on a terminal.

It goes on when a test has made the files FOLDER/fail and FOLDER/end, so that each stage can be looked at.
"""

import sys
import time
from pathlib import Path

from factory import CPU, Plant, make_cell, make_record, make_series

from runner.interrupt import terminable
from runner.layout import reached_file, record_file, series_file
from runner.progress import Progress
from runner.reached import Reached
from runner.report import write_report
from runner.report.terminal import show
from runner.study import Study

CELLS = [make_cell("default"), make_cell("benchmark"), make_cell("deterministic")]
BAD = "planted: \x1b[31m\x1b]0;title\x07 escapes\r\nsecond line"


def done(study: Study, place: int, number: int) -> None:
    """Leave a trial as its process would; the second cell's fails."""
    folder, plant = study.trial_folder(CELLS[place].id, number), Plant(outcomes={0: "failed"} if place == 1 else {})
    folder.mkdir(parents=True, exist_ok=True)
    reason = {"reason": BAD} if plant.outcomes else {}
    make_series(number).write(series_file(folder))
    make_record(CELLS[place], number, plant, environment=dict(CPU), **reason).write(record_file(folder))


def at_work(study: Study, place: int, number: int, reached: Reached) -> None:
    """Have a trial begin and say how far it has got."""
    folder = study.trial_folder(CELLS[place].id, number)
    folder.mkdir(parents=True)
    with open(reached_file(folder), "wb") as file:
        reached.write(file.fileno())


def wait(folder: Path, stage: str) -> None:
    """Stay until there is a file of this name."""
    while not (folder / stage).exists():
        time.sleep(0.05)


def main(folder: Path) -> int:
    """Show one round with two trials at work, and the end."""
    study = Study.ask(folder / "study", {"rounds": 1, "command": ["python", "-m", "runner", "-m"]}, CELLS)
    progress = Progress(study, there=0)
    try:
        with terminable(), progress.shown(), progress.watching([(cell.id, 0) for cell in CELLS]):
            at_work(study, 0, 0, Reached(7, 16, 0.43219))
            at_work(study, 1, 0, Reached(16, 16, None))
            wait(folder, "fail")
            done(study, 1, 0)
            at_work(study, 2, 0, Reached(3, 16, float("nan")))
            wait(folder, "end")
            done(study, 0, 0)
            done(study, 2, 0)
    except KeyboardInterrupt:
        pass
    summary = write_report(study)
    show(summary, study.folder)
    return 0 if progress.close(summary, "sqlite:////tmp/my store/mlflow.db") else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
