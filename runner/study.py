"""The study folder: the only source of truth, and the only module that knows its file names."""

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from runner.cell import Cell, difference
from runner.claim import Claim, claim_of
from runner.errors import StudyError, unwritable
from runner.jsonfile import read_json, write_json
from runner.owner import Owner, place
from runner.record import Record
from runner.series import Series
from runner.trial import Trial

SCHEMA = 1
# What may lie in the folder of a study that was broken off before study.json, its last file, was written.
_OURS = {"cells", "hydra", "owners", "rounds"}


@dataclass(frozen=True)
class Found:
    """The records of a study, by number and position, and what is wrong with those that cannot be used."""

    records: list[Record]
    damaged: list[str]


@dataclass(frozen=True)
class Study:
    """One question and the folder with everything known about it."""

    folder: Path

    @classmethod
    def ask(cls, folder: Path, asked: dict[str, Any], cells: list[Cell], lengthen: bool = True) -> "Study":
        """Make the folder with study.json and every cell's settings, or open it if it asks the same question.

        `asked` says what was asked ("rounds" above all), by which version and where. With `lengthen` more rounds than
        there are make the study longer. Raises StudyError if the folder asks another question or cannot be written.
        """
        study = cls(folder)
        try:
            if study._foreign():
                raise StudyError(f"study={folder}: holds other files; name a new folder, or an empty one")
            folder.mkdir(parents=True, exist_ok=True)
            with study.lock():
                if study._asked.is_file():
                    study._continue(asked["rounds"] if lengthen else 0, cells)
                else:
                    study._create(asked, cells)
        except OSError as error:
            raise StudyError(f"study={folder}: cannot be written ({error}); name a folder of yours") from error
        return study

    def _foreign(self) -> bool:
        """Whether the folder holds anything that no study, whole or half made, has; hidden files are passed over."""
        names = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        others = {name for name in names - _OURS if not name.startswith(".")}
        return bool(others) and not self._asked.is_file()

    def _create(self, asked: dict[str, Any], cells: list[Cell]) -> None:
        for cell in cells:
            self._cell_folder(cell.id).mkdir(parents=True, exist_ok=True)
            write_json(self._cell_folder(cell.id) / "cell.json", {"schema": SCHEMA, "config": cell.config})
        order = [cell.id for cell in cells]
        name = f"{self.folder.name}-{secrets.token_hex(4)}"  # folders of one name must not be taken for one study
        looks = {"looks": [asked["rounds"]]} if "rounds" in asked else {}
        write_json(self._asked, {"schema": SCHEMA, "id": name, "cells": order, **looks, **asked})

    def _continue(self, rounds: int, cells: list[Cell]) -> None:
        self._check_asked()
        there = self.cells()
        if {cell.id for cell in there} != {cell.id for cell in cells}:
            what = difference(there, cells)
            raise StudyError(f"study={self.folder}: asks another question: {what}; ask the same, or name a new folder")
        before = self.asked()
        if rounds > before["rounds"]:
            looks = sorted({*before.get("looks", [before["rounds"]]), rounds})
            write_json(self._asked, before | {"rounds": rounds, "looks": looks})

    def _check_asked(self) -> None:
        """Raises StudyError if study.json does not hold what a study is continued by."""
        asked = self.asked()
        looks, cells, rounds = asked.get("looks", [1]), asked.get("cells"), asked.get("rounds")
        fine = {
            "id": isinstance(asked.get("id"), str),
            "rounds": type(rounds) is int and rounds > 0,
            "cells": isinstance(cells, list) and all(isinstance(cell, str) for cell in cells),
            "looks": isinstance(looks, list) and all(type(look) is int for look in looks),
        }
        wrong = [name for name, usable in fine.items() if not usable]
        if wrong:
            raise StudyError(f"{self._asked}: has no usable {', '.join(wrong)}; restore it, or name a new folder")

    @classmethod
    def open(cls, folder: Path) -> "Study":
        """Open an existing study. Raises StudyError naming the folder if it holds none."""
        study = cls(folder)
        if not study._asked.is_file():
            raise StudyError(f"{folder}: no study here (study.json is missing); name the folder of a study")
        return study

    @property
    def _asked(self) -> Path:
        return self.folder / "study.json"

    def lock(self, name: str = "") -> FileLock:
        """A lock that one process at a time has, for changes to study.json or, by name, for something else."""
        return FileLock(self.folder / f".{name}lock")

    def _cell_folder(self, cell: str) -> Path:
        return self.folder / "cells" / cell

    def asked(self) -> dict[str, Any]:
        """What was asked: id, cells in order, rounds, version, command, start."""
        return read_json(self._asked, SCHEMA)

    def cells(self) -> list[Cell]:
        """The cells in the order in which they were asked for."""
        paths = [self._cell_folder(name) / "cell.json" for name in _part(self._asked, "cells")]
        return [Cell(_part(path, "config")) for path in paths]

    def trial_folder(self, cell: str, number: int) -> Path:
        """The folder of one trial."""
        return self._cell_folder(cell) / f"trial-{number:03d}"

    def round_folder(self, number: int) -> Path:
        """The folder that whoever works on a round owns."""
        return self.folder / "rounds" / f"round-{number:03d}"

    def owner_file(self, owner: str) -> Path:
        """What is known of a process that works on the study; removed at its end."""
        return self.folder / "owners" / f"{owner}.json"

    def claim(self, trial: Trial, owner: str) -> Path | None:
        """Take a trial for a process and write trial.json; None if it is taken."""
        folder = self.trial_folder(trial.cell, trial.number)
        try:
            taken = Claim(trial.claim, owner).take(folder, lambda aside: trial.write(trial_file(aside)))
        except OSError as error:
            raise unwritable(folder, error) from error
        return folder if taken else None

    def owner_of(self, folder: Path) -> Owner | None:
        """The living process that owns a round's or a trial's folder; None if it is nobody's or its owner is dead."""
        claim = claim_of(folder)
        return self._living(self.owner_file(claim.owner)) if claim else None

    def owners(self) -> list[Owner]:
        """The living processes that work on the study."""
        found = []
        for file in sorted((self.folder / "owners").glob("*.json")):
            with suppress(StudyError):  # no claim may name it: then it matters to nobody
                found.append(self._living(file))
        return [owner for owner in found if owner]

    def _living(self, file: Path) -> Owner | None:
        """The owner with this file, None if it has left or is dead. Raises StudyError for one that cannot be read."""
        try:
            owner, heartbeat = Owner.read(file), file.stat().st_mtime
        except FileNotFoundError:
            return None
        except StudyError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        if owner.is_here and owner.study not in ("", place(self.folder)):  # of the study of which this is a copy
            return None
        return owner if owner.alive(lambda: self._clock() - heartbeat) else None

    def _clock(self) -> float:
        """The time by the file system's clock, which is that of the heartbeats: clocks of machines differ."""
        probe = self.folder / "owners" / f".clock-{secrets.token_hex(4)}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        except OSError:
            return 0.0  # a folder that cannot be written: nobody is taken for dead
        finally:
            probe.unlink(missing_ok=True)

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

    def remove_leftovers(self) -> None:
        """Remove what dead processes left half made: claims that never came into place, and their own files."""
        dead = {}
        for file in (self.folder / "owners").glob("*.json"):
            with suppress(StudyError):
                if not self._living(file):
                    dead[file.stem] = file
        for aside in [*self.folder.glob("cells/*/.trial-*.*.*"), *self.folder.glob("rounds/.round-*.*.*")]:
            if aside.name.split(".")[2] in dead:
                shutil.rmtree(aside, ignore_errors=True)
        for file in dead.values():
            file.unlink(missing_ok=True)

    def found(self) -> Found:
        """All records; one that is damaged is named and left out, so that the others can be used."""
        records, damaged = [], []
        for path in sorted((self.folder / "cells").glob("*/trial-*/record.json")):
            if _is_trial(path.parent):
                try:
                    records.append(self._checked(path))
                except StudyError as error:
                    if path.exists():  # else it was set aside meanwhile
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

    def hydra_folder(self, start: str) -> Path:
        """Where Hydra keeps the files of one invocation."""
        return self.folder / "hydra" / start

    @property
    def summary_json(self) -> Path:
        """The statistics of every cell."""
        return self.folder / "summary.json"

    @property
    def summary_csv(self) -> Path:
        """The same as a table, a row a cell."""
        return self.folder / "summary.csv"

    @property
    def report_markdown(self) -> Path:
        """The report for terminals and pull requests."""
        return self.folder / "report.md"


def _part(path: Path, name: str) -> Any:
    content = read_json(path, SCHEMA)
    if name not in content:
        raise StudyError(f"{path}: has no {name}; restore it, or name the folder of another study")
    return content[name]


def _is_trial(folder: Path) -> bool:
    """Whether it is a trial's folder and no copy that was set aside."""
    return folder.name.removeprefix("trial-").isdigit()


def trial_file(folder: Path) -> Path:
    """What the child is told."""
    return folder / "trial.json"


def record_file(folder: Path) -> Path:
    """What the trial left."""
    return folder / "record.json"


def series_file(folder: Path) -> Path:
    """Its raw series."""
    return folder / "series.npz"


def log_file(folder: Path) -> Path:
    """Everything that the child printed."""
    return folder / "log.txt"


def log_end(folder: Path, size: int = 2000) -> str:
    """The last characters of a trial's log: the error, when there is one.

    After a crash the interpreter lists every extension module that it had loaded: that long line is left out.
    """
    try:
        with open(log_file(folder), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 32 * size))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if not line.startswith("Extension modules: ")).strip()[-size:]
