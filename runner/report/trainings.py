"""What the plots of repeatability draw: losses and final weights of every trial, read from the study folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from runner.record import Record
from runner.report.curves import Samples
from runner.report.family import families, settings_of
from runner.study import Study


@dataclass(frozen=True, eq=False)
class Trainings:
    """The trainings of one cell; `cell` is its part of the summary.

    losses: a float64 array (n,) for each trial that finished or diverged, n its steps; NaN and infinities stay.
    digests: of the final weights (with phase=infer of all outputs), for each finished trial.
    """

    cell: dict[str, Any]
    losses: list[np.ndarray]
    digests: list[str]

    @property
    def spread(self) -> np.ndarray:
        """Float64 (n,): the largest loss of the trials less the smallest in each step that all took; (0,) for one."""
        steps = min((len(loss) for loss in self.losses), default=0)
        if len(self.losses) < 2:
            return np.empty(0)
        rows = np.stack([loss[:steps] for loss in self.losses])
        return np.where(np.isfinite(rows).all(axis=0), np.ptp(np.where(np.isfinite(rows), rows, 0), axis=0), np.nan)


@dataclass(frozen=True)
class Group:
    """Cells that differ in the mode alone, and the settings that tell them from other groups."""

    settings: str
    cells: list[Trainings]


def groups_of(study: Study, summary: dict[str, Any], samples: Samples, most: int) -> list[Group]:
    """The first `most` families of the summary in which there is a training to draw."""
    return list(islice(_groups(study, summary, samples), most))


def _groups(study: Study, summary: dict[str, Any], samples: Samples) -> Iterator[Group]:
    for family in families(summary):
        trainings = [_trainings(study, cell, samples) for cell in family]
        if any(one.losses or one.digests for one in trainings):
            yield Group(", ".join(settings_of(family)), trainings)


def _trainings(study: Study, cell: dict[str, Any], samples: Samples) -> Trainings:
    sample = samples.get((cell["cell"], cell["environment"]))
    records = [one for one in sample.records if one.complete or one.outcome == "diverged"] if sample else []
    losses = [loss for loss in (_loss(study, record) for record in records) if loss is not None and len(loss)]
    return Trainings(cell, losses, [one.digests.final for one in records if one.complete and one.digests])


def _loss(study: Study, record: Record) -> np.ndarray | None:
    found = study.series_part(record, "loss")
    return None if found is None else found[0].astype(np.float64)
