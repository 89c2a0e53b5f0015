"""The rounds of a study: which trial is launched when, and with which overrides."""

import random
from collections.abc import Iterator

from hydra.plugins.launcher import Launcher

from runner.expand import Asked, assignment
from runner.record import Record
from runner.study import Study


def launch(
    study: Study, cells: list[Asked], rounds: int, launcher: Launcher, hydra_folder: str, singly: bool
) -> Iterator[list[Record | None]]:
    """Launch all trials, round after round, and yield the records as they come; None for a trial that left none.

    `singly` launches one at a time: Hydra's basic launcher works in this process, one after another, and so each can
    be shown when it is done. Other launchers work side by side and get whole rounds.
    """
    started, name = 0, study.asked()["id"]
    for number in range(rounds):
        placed = list(enumerate(in_order(cells, name, number)))
        size = 1 if singly else len(placed)
        for batch in (placed[first : first + size] for first in range(0, len(placed), size)):
            overrides = [_overrides(asked, study, number, position, hydra_folder) for position, asked in batch]
            for returned in launcher.launch(overrides, initial_job_idx=started):
                _ = returned.return_value  # raises what was raised there
            started += len(batch)
            yield [study.record(asked.cell.id, number) for _, asked in batch]


def in_order(cells: list[Asked], study: str, number: int) -> list[Asked]:
    """The cells in the order of one round: shuffled, because a fixed order makes a cell's place part of its result.

    Seeded by the study's id and the round, so that the same study has the same order again.
    """
    shuffled = list(cells)
    random.Random(f"{study}/{number}").shuffle(shuffled)
    return shuffled


def _overrides(asked: Asked, study: Study, number: int, position: int, hydra_folder: str) -> list[str]:
    return [
        *asked.overrides,
        assignment("study", str(study.folder)),
        assignment("hydra.sweep.dir", hydra_folder),
        assignment("trial.number", number),
        assignment("trial.position", position),
    ]
