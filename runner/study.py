"""The study folder: the only source of truth, and the only module that knows its file names."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from filelock import FileLock

from runner.asked import longer, looks_of, recipe_of, unusable
from runner.cell import Cell, difference
from runner.claim import Claim, claim_of
from runner.errors import StudyError, unwritable
from runner.jsonfile import read_json, write_json
from runner.kernel_use import KernelUse
from runner.logits import Logits
from runner.ownership import Owned
from runner.record import Record
from runner.series import Series
from runner.trace import Trace
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
            if not self._asked.is_file():  # looked up last: another process may make the study at this moment
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
        return any(not name.startswith(".") for name in names - _OURS)

    def _create(self, asked: dict[str, Any], cells: list[Cell]) -> None:
        for cell in cells:
            self._cell_folder(cell.id).mkdir(parents=True, exist_ok=True)
            write_json(self._cell_folder(cell.id) / "cell.json", {"schema": SCHEMA, "config": cell.config})
        order = [cell.id for cell in cells]
        name = f"{self.folder.name}-{secrets.token_hex(4)}"  # folders of one name must not be taken for one study
        looks = {"looks": [asked["rounds"]]} if "rounds" in asked else {}
        write_json(self._asked, {"schema": SCHEMA, "id": name, "cells": order, **looks, **asked})

    def _continue(self, asked: dict[str, Any], lengthen: bool) -> None:
        before = self.asked()
        there, here = recipe_of(before), recipe_of(asked)
        if there and here and there != here:
            raise StudyError(f"study={self.folder}: follows {there}, not {here}; ask for that, or name a new folder")
        after = before | {name: asked[name] for name in ("plan", "recipe") if name in asked}
        if lengthen:
            after = longer(after, asked["rounds"], self.looks)
        if after != before:
            write_json(self._asked, after)

    def lengthen(self, rounds: int, looked: list[int]) -> None:
        """Make the study longer if it has fewer rounds; `looked` are the numbers of rounds at which it was looked at.

        Whoever adds one round after another looks at the last of them only.
        """
        with self.lock():
            before = self.asked()
            after = longer(before, rounds, looked)
            if after != before:
                write_json(self._asked, after)

    @property
    def looks(self) -> list[int]:
        """The numbers of rounds at which the study was looked at, the present one too."""
        return looks_of(self.asked())

    def _check_asked(self) -> None:
        """Raises StudyError if study.json does not hold what a study is continued by."""
        wrong = unusable(self.asked())
        if wrong:
            raise StudyError(f"{self._asked}: has no usable {', '.join(wrong)}; restore it, or name a new folder")

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
        return self._asked.is_file()

    @property
    def _asked(self) -> Path:
        return self.folder / "study.json"

    def lock(self, name: str = "") -> FileLock:
        """A lock that one process at a time has, for changes to study.json or, by name, for something else."""
        return FileLock(self.folder / f".{name}lock")

    def _cell_folder(self, cell: str) -> Path:
        return self.folder / "cells" / cell

    def asked(self) -> dict[str, Any]:
        """What was asked: id, cells in order, rounds, plan, version, command, start."""
        return read_json(self._asked, SCHEMA)

    def cells(self) -> list[Cell]:
        """The cells in the order in which they were asked for."""
        paths = [self._cell_folder(name) / "cell.json" for name in _part(self._asked, "cells")]
        return [Cell(_part(path, "config")) for path in paths]

    def trial_folder(self, cell: str, number: int) -> Path:
        """The folder of one trial."""
        return self._cell_folder(cell) / f"trial-{number:03d}"

    def capture_folder(self, cell: str, number: int) -> Path:
        """The folder of one more training of a cell, which keeps what single operations took and gave."""
        return self._cell_folder(cell) / f"capture-{number:03d}"

    def capture_folders(self, cell: str) -> list[Path]:
        """Those of a cell that are there, in order."""
        return list(takewhile(Path.exists, (self.capture_folder(cell, number) for number in count())))

    def round_folder(self, number: int) -> Path:
        """The folder that whoever works on a round owns."""
        return self.folder / "rounds" / f"round-{number:03d}"

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

    @property
    def report_html(self) -> Path:
        """The report for browsers, in one file."""
        return self.folder / "report.html"

    def report_files(self) -> list[Path]:
        """What there is of the report."""
        named = [self.report_html, self.report_markdown, self.summary_json, self.summary_csv]
        return [path for path in (*named, *sorted((self.folder / "plots").glob("*.*"))) if path.is_file()]

    @property
    def plots(self) -> Path:
        """The folder of the report's plots."""
        return self.folder / "plots"

    def plot(self, name: str) -> Path:
        """One of the report's plots."""
        return self.plots / f"{name}.svg"


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


def logits_file(folder: Path) -> Path:
    """The logits of its last evaluation, where they are kept."""
    return folder / "logits.npz"


def trace_file(folder: Path) -> Path:
    """What a probe of operations or modules saw of it."""
    return folder / "ops.jsonl.gz"


def kernels_file(folder: Path) -> Path:
    """What a probe of kernels saw of it."""
    return folder / "kernels.json"


def operations_file(folder: Path) -> Path:
    """What a capture found out about its operations."""
    return folder / "operations.json"


def outputs_file(folder: Path, index: int) -> Path:
    """The outputs of an operation that a capture kept."""
    return folder / f"operation-{index}.npz"


def tensors_file(folder: Path, index: int) -> Path:
    """The operation with all its arguments as torch.save wrote them: {"name", "args", "kwargs"}."""
    return folder / f"operation-{index}.pt"


def reached_file(folder: Path) -> Path:
    """How far it has got, while it works."""
    return folder / ".reached.json"


def attached_folder(folder: Path) -> Path:
    """Where an attached script's own processes leave what they saw, until it is in the record."""
    return folder / "attached"


def log_file(folder: Path) -> Path:
    """Everything that the child printed."""
    return folder / "log.txt"
