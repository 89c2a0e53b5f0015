"""The study folder: the only source of truth, and the only module that knows its file names."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.cell import Cell
from runner.errors import StudyError
from runner.jsonfile import read_json, write_json
from runner.record import Record
from runner.series import Series
from runner.trial import Trial

SCHEMA = 1


@dataclass(frozen=True)
class Study:
    """One question and the folder with everything known about it."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, asked: dict[str, Any], cells: list[Cell]) -> "Study":
        """Make the folder with study.json and every cell's settings.

        `asked` says what was asked, by which version and where. Raises StudyError if a study is there already or
        the folder cannot be written.
        """
        study = cls(folder)
        try:
            if folder.is_dir() and any(folder.iterdir()) and not study._asked.is_file():
                raise StudyError(f"study={folder}: holds other files; name a new folder, or an empty one")
            (folder / "cells").mkdir(parents=True)
        except FileExistsError:
            raise StudyError(f"study={folder}: there is a study already; name another folder") from None
        except OSError as error:
            raise StudyError(f"study={folder}: cannot be written ({error}); name a folder of yours") from error
        for cell in cells:
            study._cell_folder(cell.id).mkdir()
            write_json(study._cell_folder(cell.id) / "cell.json", {"schema": SCHEMA, "config": cell.config})
        order = [cell.id for cell in cells]
        name = f"{folder.name}-{secrets.token_hex(4)}"  # folders of one name must not be taken for one study
        write_json(study._asked, {"schema": SCHEMA, "id": name, "cells": order, **asked})
        return study

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

    def claim(self, trial: Trial) -> Path | None:
        """Take a trial for this process and write trial.json; None if it is taken. Making a folder is atomic."""
        folder = self.trial_folder(trial.cell, trial.number)
        try:
            folder.mkdir()
        except FileExistsError:
            return None
        trial.write(trial_file(folder))
        return folder

    def records(self) -> list[Record]:
        """All records, by number and position. Raises StudyError naming a damaged one."""
        paths = (self.folder / "cells").glob("*/trial-*/record.json")
        own = (path for path in paths if path.parent.name.removeprefix("trial-").isdigit())  # not a copy set aside
        return sorted((Record.read(path) for path in own), key=lambda record: (record.number, record.position))

    def record(self, cell: str, number: int) -> Record | None:
        """One trial's record, None while there is none."""
        path = record_file(self.trial_folder(cell, number))
        return Record.read(path) if path.is_file() else None

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
