"""How long trials will take: by the records of the study where it has any, else by a short pilot trial.

A pilot is no trial of the study: it is done in a folder of its own that is removed, and nothing of it is kept.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

from runner import isolate
from runner.cell import Cell
from runner.duration import exact
from runner.expand import Asked
from runner.jsonfile import canonical
from runner.layout import log_file, trial_file
from runner.mode import mode_text
from runner.record import Record, Speed
from runner.trial import Trial

PILOT_STEPS = 10


class NoEstimate(Exception):
    """A pilot that failed; the message says how."""


@dataclass(frozen=True)
class Estimate:
    """The mean seconds that a trial takes, and what they were taken from, in words."""

    trial_s: float
    source: str


def estimated(
    cells: list[Asked], records: list[Record], say: Callable[[str], None], end_s: float | None = None
) -> Estimate:
    """The estimate for these cells: each group that differs in the mode alone has one figure.

    Takes the time of a pilot trial for each group without finished records, but none after `end_s` by time.monotonic.
    Raises NoEstimate.
    """
    seconds: list[float] = []
    piloted: list[Asked] = []
    counted = 0
    for group in _groups(cells):
        ids = {one.cell.id for one in group}
        own = [span_s(record) for record in records if record.complete and record.cell in ids]
        counted += len(own)
        if not own:
            piloted.append(_dearest(group))
        seconds += [mean(own) if own else _pilot_s(piloted[-1], say, end_s)] * len(group)
    return Estimate(mean(seconds), _source(piloted, counted))


def _groups(cells: list[Asked]) -> Iterable[list[Asked]]:
    groups: dict[str, list[Asked]] = {}
    for one in cells:
        config = one.cell.config
        groups.setdefault(canonical(config | {"cudnn": {}}), []).append(one)
    return groups.values()


def _dearest(group: list[Asked]) -> Asked:
    """One that tunes, if there is one: its first step is the longest."""
    return max(group, key=lambda one: one.settings.cudnn.benchmark)


def _source(piloted: list[Asked], records: int) -> str:
    parts = [f"{records} finished trial{'' if records == 1 else 's'}"] if records else []
    if len(piloted) == 1:
        parts.append(f"a pilot trial of {_of(piloted[0])}")
    elif piloted:
        parts.append(f"{len(piloted)} pilot trials of at most {PILOT_STEPS} steps")
    return " and ".join(parts)


def _of(one: Asked) -> str:
    if one.cell.phase == "calls":  # a loop of calls cannot be cut short: its first calls are a part of it
        return f"{one.settings.calls.times} calls of {mode_text(one.cell.config['cudnn'])}"
    steps = _shortened(one.cell.config)["train"]["steps"]
    return f"{steps} {'step' if steps == 1 else 'steps'} of {mode_text(one.cell.config['cudnn'])}"


def span_s(record: Record) -> float:
    """How long a trial's process was at work, in seconds."""
    return (datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)).total_seconds()


def _timeout(asked: Asked, end_s: float | None) -> float | None:
    """How long a pilot may take, None for any time. Raises NoEstimate where no time is left."""
    if end_s is None:
        return asked.settings.timeout
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise NoEstimate("no time is left for a pilot trial; give more")
    return min(left_s, asked.settings.timeout or left_s)


def _pilot_s(asked: Asked, say: Callable[[str], None], end_s: float | None) -> float:
    """How long a trial would take, by a pilot with its first few steps: seconds."""
    timeout = _timeout(asked, end_s)
    say(f"a pilot trial of {_of(asked)} tells first how long the study will take")
    settings, config = asked.settings, asked.cell.config
    with tempfile.TemporaryDirectory(prefix="cudnn-mode-runner-") as temporary:
        folder = Path(temporary)
        exclusive = settings.exclusive and settings.device != "cpu"
        trial = Trial.of(Cell(_shortened(config)), 0, 0, settings.device, exclusive)
        trial.write(trial_file(folder))
        record = isolate.run(trial, folder, os.getcwd(), timeout, say)
        # From the child's own start, before which it may have waited for the device or for torch to be loaded once.
        pilot_s = (datetime.now(UTC) - datetime.fromisoformat(record.started)).total_seconds()
        if record.outcome == "timed_out" and timeout != settings.timeout:
            assert timeout is not None
            raise NoEstimate(f"a pilot trial of {_of(asked)} did not end in the {exact(timeout)} left; give more")
        if record.speed is None:
            raise NoEstimate(record.reason)
        if asked.cell.phase == "calls":
            return pilot_s
        steps = config["train"]["steps"] or _steps_of_epochs(config, folder, end_s and _timeout(asked, end_s))
    every = config["train"]["evaluate_every"] if config["phase"] == "train" else None
    return whole_s(pilot_s, record.speed, steps, every, config.get("repeat_in_process", 1))


def _shortened(config: dict[str, Any]) -> dict[str, Any]:
    steps = min(config["train"]["steps"] or PILOT_STEPS, PILOT_STEPS)
    return config | {"train": config["train"] | {"steps": steps, "epochs": None, "evaluate_every": None}}


def _steps_of_epochs(config: dict[str, Any], folder: Path, timeout: float | None) -> int:
    """How many steps the epochs are: a child loads the data to say so. Raises NoEstimate if it cannot in this time."""
    Trial.of(Cell(config), 0, 0, "cpu").write(trial_file(folder))
    answer = folder / "steps"
    request = {"call": "runner.worker.epochs:count_steps", "argument": str(answer), "log": str(log_file(folder))}
    isolate.server(config, os.getcwd()).call(request, timeout)
    try:
        return int(answer.read_text())
    except OSError:
        raise NoEstimate("the steps of an epoch could not be counted") from None


def whole_s(pilot_s: float, speed: Speed, steps: int, evaluate_every: int | None, trainings: int = 1) -> float:
    """The seconds that a trial of so many steps takes when one of speed.steps steps took pilot_s.

    A later step takes what the pilot's took on average, where there are such that meet no input shape for the first
    time; each but the last evaluation is one more than the pilot had. The pilot has trained as often as a trial does.
    """
    new_shapes_s = sum(speed.new_shapes_ms) / 1000
    later = speed.steps - 1 - len(speed.new_shapes_ms)
    if later <= 0:
        later, new_shapes_s = max(speed.steps - 1, 1), 0.0
    later_s = max(0.0, speed.train_s - speed.first_step_ms / 1000 - new_shapes_s) / later
    evaluations = (steps - 1) // evaluate_every if evaluate_every else 0
    return pilot_s + trainings * (max(steps - speed.steps, 0) * later_s + evaluations * speed.evaluate_s)
