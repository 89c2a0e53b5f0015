"""Evidence: what of a study can be used. Damage costs the trial that it hit, never the others."""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from runner.analysis.looks import Looks
from runner.cell import Cell
from runner.errors import StudyError
from runner.jsonfile import of_fields
from runner.layout import record_file
from runner.plan import USUAL, Plan
from runner.record import Record
from runner.study import Study


@dataclass(frozen=True)
class Question:
    """What was asked: the study's id, the ids of its cells in order, and the rounds, None in a study without a say.

    `looks` are the numbers of rounds at which the study was looked at so far, the present one too.
    """

    id: str
    cells: list[str]
    rounds: int | None
    plan: Plan
    looks: list[int]

    @classmethod
    def of(cls, study: Study) -> "Question":
        """What study.json says. Raises StudyError naming the study and what is damaged."""
        asked: dict[str, Any] = {"rounds": None, "plan": asdict(USUAL), "looks": []} | study.asked()
        try:
            plan = of_fields(Plan, asked["plan"], "plan")
            names = ("id", "cells", "rounds", "looks")
            return of_fields(cls, {name: asked[name] for name in names if name in asked} | {"plan": plan})
        except ValueError as error:
            raise StudyError(f"{study.folder}: what was asked is damaged: {error}; restore study.json") from error


@dataclass(frozen=True)
class Evidence:
    """The records of a study that can be used, by number and position, and what is wrong with the others."""

    question: Question
    cells: list[Cell]
    records: list[Record]
    damaged: list[str]

    @classmethod
    def of(cls, study: Study) -> "Evidence":
        """Read a study. Raises StudyError where what was asked is damaged itself: study.json or a cell's settings."""
        question = Question.of(study)
        cells, found = _cells(study, question), study.found()
        doubts = [_doubt(study, question, record) for record in found.records]
        usable = [record for record, doubt in zip(found.records, doubts, strict=True) if doubt is None]
        return cls(question, cells, usable, [*found.damaged, *filter(None, doubts)])

    @cached_property
    def looks(self) -> Looks:
        """The looks at this study. One that does not say how many rounds were asked is looked at with what is there."""
        there = 1 + max((record.number for record in self.records), default=0)
        return Looks.of([*self.question.looks, self.question.rounds or there])

    def missing(self, cell: str) -> int:
        """How many of a cell's trials that were asked for are not among the records."""
        return max((self.question.rounds or 0) - self._there[cell], 0)

    @cached_property
    def _there(self) -> Counter[str]:
        return Counter(record.cell for record in self.records)


def _cells(study: Study, question: Question) -> list[Cell]:
    """The cells; their ids are digests of their settings, so that no change to these goes unseen."""
    cells = study.cells()
    for name, cell in zip(question.cells, cells, strict=True):
        if cell.id != name:
            raise StudyError(f"{study.folder}: the settings of cell {name} were changed; restore its cell.json")
    return cells


def _doubt(study: Study, question: Question, record: Record) -> str | None:
    """What speaks against a record that is sound in itself."""
    if record.cell not in question.cells:
        path = record_file(study.trial_folder(record.cell, record.number))
        return f"{path}: the study has no cell {record.cell}; remove its folder"
    try:
        study.series(record)  # read again cell by cell later: all at once may not fit into memory
        study.logits(record)
    except StudyError as error:
        return str(error)
    return None
