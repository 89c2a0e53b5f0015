"""The rounds of a study: which trial is launched when, and with which overrides."""

import random
from collections.abc import Iterator

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.plugins.launcher import Launcher

from runner.expand import Job, assignment
from runner.record import Record
from runner.study import Study


def launch(study: Study, jobs: list[Job], rounds: int, launcher: Launcher, hydra_folder: str) -> Iterator[list[Record]]:
    """Launch all trials, round after round, and yield the records as they come.

    Hydra's basic launcher works in this process, one job after another: given one at a time, each trial can be shown
    when it is done. The others work side by side and get whole rounds.
    """
    started, name = 0, study.asked()["id"]
    for number in range(rounds):
        placed = list(enumerate(in_order(jobs, name, number)))
        size = 1 if isinstance(launcher, BasicLauncher) else len(placed)
        for batch in (placed[start : start + size] for start in range(0, len(placed), size)):
            overrides = [_overrides(job, study, number, position, hydra_folder) for position, job in batch]
            for returned in launcher.launch(overrides, initial_job_idx=started):
                _ = returned.return_value  # raises what the job raised
            started += len(batch)
            yield [record for _, job in batch if (record := study.record(job.cell.id, number))]


def in_order(jobs: list[Job], study: str, number: int) -> list[Job]:
    """The cells in the order of one round: shuffled, because a fixed order makes a cell's place part of its result.

    Seeded by the study's id and the round, so that the same study has the same order again.
    """
    shuffled = list(jobs)
    random.Random(f"{study}/{number}").shuffle(shuffled)
    return shuffled


def _overrides(job: Job, study: Study, number: int, position: int, hydra_folder: str) -> list[str]:
    return [
        *job.overrides,
        assignment("study", str(study.folder)),
        assignment("hydra.sweep.dir", hydra_folder),
        assignment("trial.number", number),
        assignment("trial.position", position),
    ]
