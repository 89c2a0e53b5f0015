"""Captures: further trainings of a study's cells that keep what the operations found took and gave.

They are no trials: they count in no statistics, and what goes wrong with them costs a line and nothing else.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner import isolate
from runner.analysis.accuracy import counterparts, question
from runner.cell import Cell
from runner.errors import StudyError
from runner.layout import record_file, trial_file
from runner.record import Record
from runner.study import Study
from runner.trial import Trial

MOST_OPERATIONS = 8
CAPTURES = 2  # of a cell with findings: what differs between processes needs two


@dataclass(frozen=True)
class _Asked:
    """Operations that a cell's captures must hold: each index in so many captures, made as trial `number` was."""

    cell: str
    label: str
    number: int
    indices: list[int]
    captures: int


def run_captures(
    study: Study, summary: dict[str, Any], say: Callable[[str], None] = print, timeout: float | None = None
) -> int:
    """Capture what is not captured yet of the operations that the summary found; returns how many captures were made.

    Twice for each cell with findings, once for others of the same model and data, whose errors are compared. Ctrl-C
    passes; `say` is told of a capture that failed. `timeout` is for each, in seconds.
    """
    made = 0
    try:
        with study.lock("capture"):
            for asked in _asked(study, summary):
                for turn in range(1, asked.captures + 1):
                    made += _captured(study, asked, f"{turn} of {asked.captures}", say, timeout)
    except (StudyError, OSError) as error:
        say(f"not all operations could be captured: {error}")
    return made


def differing(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings in a cell of a summary that are operations whose results differ on equal inputs."""
    return [one for one in (cell["traces"] or {}).get("findings", []) if one["rung"] == "operation"]


def captured_indices(cell: dict[str, Any]) -> list[int]:
    """The operations found in a cell of a summary that are captured: the first few of different names and modules."""
    first: dict[tuple[str, str], int] = {}
    for one in sorted(differing(cell), key=lambda one: int(one["index"])):
        first.setdefault((one["name"], one["module"]), one["index"])
    return list(first.values())[:MOST_OPERATIONS]


def _asked(study: Study, summary: dict[str, Any]) -> Iterator[_Asked]:
    """The captures that this summary asks for, those of cells with findings first."""
    traced = [cell for cell in summary["cells"] if Cell(cell["config"]).probe == "ops"]
    found = [(cell, indices) for cell in traced if (indices := captured_indices(cell))]
    numbers = {record.cell: record.number for record in reversed(study.records()) if record.complete}
    for cell, indices in found:
        number = next(one["trials"][0] for one in differing(cell) if one["index"] == indices[0])
        yield _Asked(cell["cell"], cell["label"], number, indices, CAPTURES)
    for cell in traced:
        model = next((pair for pair in found if question(pair[0]["config"]) == question(cell["config"])), None)
        if model and not captured_indices(cell) and cell["cell"] in numbers:
            same = _same_operations(study, model, cell["cell"], numbers)
            yield _Asked(cell["cell"], cell["label"], numbers[cell["cell"]], same, 1)


def _same_operations(study: Study, model: Any, cell: str, numbers: dict[str, int]) -> list[int]:
    """The indices in this cell's trace of the operations that were found in another cell."""
    traces = []
    for name in (model[0]["cell"], cell):
        record = study.record(name, numbers[name]) if name in numbers else None
        traces.append(study.trace(record) if record else None)
    first, second = traces
    return counterparts(first, model[1], second) if first and second else []


def _captured(study: Study, asked: _Asked, turn: str, say: Callable[[str], None], timeout: float | None) -> bool:
    """Make one capture of what is in too few; whether there was anything to capture."""
    folders = study.capture_folders(asked.cell)
    there = [trial.capture for trial in _made(folders)]
    missing = [index for index in asked.indices if sum(index in one for one in there) < asked.captures]
    if not missing:
        return False
    model = Trial.read(trial_file(study.trial_folder(asked.cell, asked.number)))
    trial = replace(model, config=_shortened(model.config), claim=secrets.token_hex(8), capture=tuple(missing))
    folder = study.capture_folder(asked.cell, len(folders))
    folder.mkdir()
    trial.write(trial_file(folder))
    what = f"{len(missing)} operation{'' if len(missing) == 1 else 's'}"
    say(f"{asked.label}: one more training, {turn}, keeps what {what} took and gave")
    record = isolate.run(trial, folder, _working_folder(study), timeout, say)
    if record.failed:
        say(f"{asked.label}: {what} could not be captured: {record.reason}")
    return True


def _made(folders: Sequence[Path]) -> Iterator[Trial]:
    """The captures that were made in these; one that was broken off counts no more, and is made again."""
    for folder in folders:
        with suppress(StudyError):
            if Record.read(record_file(folder)).outcome != "interrupted":
                yield Trial.read(trial_file(folder))


def _shortened(config: dict[str, Any]) -> dict[str, Any]:
    """Only the steps that are traced, where those are the same without the later ones: a schedule looks ahead."""
    train, traced = config["train"], config["probe"]["steps"]
    if train["schedule"] != "constant":
        return config
    steps = min(train["steps"] or traced, traced)
    return config | {"train": train | {"steps": steps, "epochs": None, "evaluate_every": None}}


def _working_folder(study: Study) -> str:
    """Where the study's command was given, which is where a user's own modules are found."""
    folder = str(study.asked().get("folder", os.getcwd()))
    return folder if Path(folder).is_dir() else os.getcwd()
