"""The study folder: the only source of truth."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from runner.asked import longer, looks_of, recipe_of, unusable
from runner.cell import Cell, difference
from runner.claim import Claim, claim_of
from runner.errors import StudyError, unwritable
from runner.jsonfile import read_json, write_json
from runner.kernel_use import KernelUse
from runner.layout import FOLDERS, kernels_file, logits_file, may_be, record_file, series_file, trace_file, trial_file
from runner.logits import Logits
from runner.ownership import Owned
from runner.record import Record
from runner.series import Series
from runner.trace import Trace
from runner.trial import Trial

SCHEMA = 1


@dataclass(frozen=True)
class Found:
    """The records of a study, by number and position, and what is wrong with those that cannot be used."""

    records: list[Record]
    damaged: list[str]


@dataclass(frozen=True)
class Study(Owned):
    """One question and the folder with everything known about it."""

    @classmethod
    def ask(cls, folder: Path, asked: dict[str, Any], cells: list[Cell], lengthen: bool = True) -> "Study":
        """Make the folder with study.json and every cell's settings, or open it if it asks the same question.

        `asked` says what was asked ("rounds" above all), by which version and where. In a study that is there `plan`
        is replaced, and so is `recipe`, which a study may also begin to follow; with `lengthen` more rounds than there
        are make it longer. Raises StudyError if the folder asks another question, follows another recipe, or cannot be
        written.
        """
        study = cls(folder)
        study.asks(cells)
        with study._of_ours():
            folder.mkdir(parents=True, exist_ok=True)
            with study.lock():
                if study.asks(cells):
                    study._continue(asked, lengthen)
                else:
                    study._create(asked, cells)
        return study

    def asks(self, cells: list[Cell]) -> bool:
        """Whether there is a study of these cells. Raises StudyError for one of other cells, and for others' files."""
        with self._of_ours():
            foreign = self._foreign()
            if not self.study_json.is_file():  # looked up last: another process may make the study at this moment
                if foreign:
                    raise StudyError(f"study={self.folder}: holds other files; name a new folder, or an empty one")
                return False
        self._check_asked()
        there = self.cells()
        if {cell.id for cell in there} != {cell.id for cell in cells}:
            what = difference(there, cells)
            raise StudyError(f"study={self.folder}: asks another question: {what}; ask the same, or name a new folder")
        return True

    @contextmanager
    def _of_ours(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StudyError(f"study={self.folder}: cannot be written ({error}); name a folder of yours") from error

    def _foreign(self) -> bool:
        """Whether the folder holds anything that no study half made has; hidden files are passed over."""
        names = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        return any(not name.startswith(".") for name in names - FOLDERS)

    def _create(self, asked: dict[str, Any], cells: list[Cell]) -> None:
        for cell in cells:
            self.cell_folder(cell.id).mkdir(parents=True, exist_ok=True)
            write_json(self.cell_json(cell.id), {"schema": SCHEMA, "config": cell.config})
        order = [cell.id for cell in cells]
        name = f"{self.folder.name}-{secrets.token_hex(4)}"  # folders of one name must not be taken for one study
        looks = {"looks": [asked["rounds"]]} if "rounds" in asked else {}
        write_json(self.study_json, {"schema": SCHEMA, "id": name, "cells": order, **looks, **asked})

    def _continue(self, asked: dict[str, Any], lengthen: bool) -> None:
        before = self.asked()
        there, here = recipe_of(before), recipe_of(asked)
        if there and here and there != here:
            raise StudyError(f"study={self.folder}: follows {there}, not {here}; ask for that, or name a new folder")
        after = before | {name: asked[name] for name in ("plan", "recipe") if name in asked}
        if lengthen:
            after = longer(after, asked["rounds"], self.looks)
        if after != before:
            write_json(self.study_json, after)

    def lengthen(self, rounds: int, looked: list[int]) -> None:
        """Make the study longer if it has fewer rounds; `looked` are the numbers of rounds at which it was looked at.

        Whoever adds one round after another looks at the last of them only.
        """
        with self.lock():
            before = self.asked()
            after = longer(before, rounds, looked)
            if after != before:
                write_json(self.study_json, after)

    @property
    def looks(self) -> list[int]:
        """The numbers of rounds at which the study was looked at, the present one too."""
        return looks_of(self.asked())

    def _check_asked(self) -> None:
        """Raises StudyError if study.json does not hold what a study is continued by."""
        wrong = unusable(self.asked())
        if wrong:
            raise StudyError(f"{self.study_json}: has no usable {', '.join(wrong)}; restore it, or name a new folder")

    @classmethod
    def open(cls, folder: Path) -> "Study":
        """Open an existing study. Raises StudyError naming the folder if it holds none."""
        study = cls(folder)
        if not study.exists:
            raise StudyError(f"{folder}: no study here (study.json is missing); name the folder of a study")
        return study

    @property
    def exists(self) -> bool:
        """Whether the folder holds a study."""
        return self.study_json.is_file()

    def lock(self, name: str = "") -> FileLock:
        """A lock that one process at a time has, for changes to study.json or, by name, for something else."""
        return FileLock(self.lock_file(name))

    def asked(self) -> dict[str, Any]:
        """What was asked: id, cells in order, rounds, plan, version, command, start."""
        return read_json(self.study_json, SCHEMA)

    def cells(self) -> list[Cell]:
        """The cells in the order in which they were asked for."""
        paths = [self.cell_json(name) for name in _part(self.study_json, "cells")]
        return [Cell(_part(path, "config")) for path in paths]

    def claim(self, trial: Trial, owner: str) -> Path | None:
        """Take a trial for a process and write trial.json; None if it is taken."""
        folder = self.trial_folder(trial.cell, trial.number)
        try:
            taken = Claim(trial.claim, owner).take(folder, lambda aside: trial.write(trial_file(aside)))
        except OSError as error:
            raise unwritable(folder, error) from error
        return folder if taken else None

    def set_aside(self, cell: str, number: int) -> None:
        """Have a trial's folder kept under another name, where it counts no more, so that the trial can be done again.

        To be called by the owner of its round only, and for a trial that no living process has.
        """
        folder = self.trial_folder(cell, number)
        claim = claim_of(folder)
        if claim:
            claim.set_aside(folder)
        elif folder.exists():  # its claim was removed, by hand or by the trial
            folder.rename(folder.with_name(f"{folder.name}.unowned-{secrets.token_hex(4)}"))

    def found(self) -> Found:
        """All records; one that is damaged is named and left out, so that the others can be used."""
        records, damaged = [], []
        for path in self.record_files():
            try:
                records.append(self._checked(path))
            except StudyError as error:
                if may_be(path):  # else it was set aside meanwhile
                    damaged.append(str(error))
        return Found(sorted(records, key=lambda record: (record.number, record.position)), damaged)

    def records(self) -> list[Record]:
        """All records that can be used, by number and position."""
        return self.found().records

    def record(self, cell: str, number: int) -> Record | None:
        """One trial's record, None while there is none. Raises StudyError for a damaged one."""
        path = record_file(self.trial_folder(cell, number))
        return self._checked(path) if path.is_file() else None

    def _checked(self, path: Path) -> Record:
        record = Record.read(path)
        if path.parent != self.trial_folder(record.cell, record.number):
            where = f"trial {record.number} of cell {record.cell}"
            raise StudyError(f"{path}: is the record of {where}; it was moved here, put it back or remove it")
        claim = claim_of(path.parent)
        if claim and record.process.get("claim", claim.name) != claim.name:
            raise StudyError(f"{path}: is the record of another attempt at this trial; remove it")
        return record

    def series(self, record: Record) -> Series | None:
        """The series of a record's trial, None if the trial did not get so far."""
        path = series_file(self.trial_folder(record.cell, record.number))
        return Series.read(path) if path.is_file() else None

    def series_part(self, record: Record, *names: str) -> list[np.ndarray] | None:
        """Some arrays of a record's series by name, None as `series`: what is not asked for is not unpacked."""
        path = series_file(self.trial_folder(record.cell, record.number))
        return Series.read_part(path, *names) if path.is_file() else None

    def logits(self, record: Record) -> Logits | None:
        """The logits of a record's trial, None if none were kept. Raises StudyError if they are damaged."""
        path = logits_file(self.trial_folder(record.cell, record.number))
        return Logits.read(path) if path.is_file() else None

    def trace(self, record: Record) -> Trace | None:
        """The operations or modules of a record's trial, None where there is no file of them.

        Raises StudyError if it is damaged, or is that of another trial.
        """
        path = trace_file(self.trial_folder(record.cell, record.number))
        if not path.exists():
            return None
        trace = Trace.read(path)
        _check_place(path, trace, record)
        return trace

    def kernels(self, record: Record) -> KernelUse | None:
        """The kernels of a record's trial, None where there is no file of them. Raises StudyError as `trace` does."""
        path = kernels_file(self.trial_folder(record.cell, record.number))
        if not path.exists():
            return None
        use = KernelUse.read(path)
        _check_place(path, use, record)
        return use


def _part(path: Path, name: str) -> Any:
    content = read_json(path, SCHEMA)
    if name not in content:
        raise StudyError(f"{path}: has no {name}; restore it, or name the folder of another study")
    return content[name]


def _check_place(path: Path, found: Trace | KernelUse, record: Record) -> None:
    """Raises StudyError if what a probe left is not of the trial in whose folder it lies."""
    if (found.cell, repr(found.number)) != (record.cell, repr(record.number)):
        where = f"trial {found.number} of cell {found.cell}"
        raise StudyError(f"{path}: is of {where}; it was moved here, put it back or remove it")
