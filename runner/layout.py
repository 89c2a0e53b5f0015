"""The names of all files and folders of a study: no other module knows them."""

import os
import re
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

# What may lie in the folder of a study that was broken off before study.json, its last file, was written.
FOLDERS = {"cells", "hydra", "owners", "rounds"}
_TRIAL = re.compile(r"trial-\d+")


@dataclass(frozen=True)
class Layout:
    """Where everything lies in the folder of a study."""

    folder: Path

    @property
    def study_json(self) -> Path:
        """What was asked."""
        return self.folder / "study.json"

    def lock_file(self, name: str) -> Path:
        """What a process locks that changes something; with an empty name study.json."""
        return self.folder / f".{name}lock"

    def cell_folder(self, cell: str) -> Path:
        """The folder of all trials of a cell."""
        return self.folder / "cells" / cell

    def cell_json(self, cell: str) -> Path:
        """The settings of a cell."""
        return self.cell_folder(cell) / "cell.json"

    def trial_folder(self, cell: str, number: int) -> Path:
        """The folder of one trial."""
        return self.folder.joinpath("cells", cell, f"trial-{number:03d}")  # in one: a report asks 100,000 times

    def record_files(self) -> list[Path]:
        """The records of all trials, without those in copies that were set aside; also of those that nobody may read.

        Raises OSError for a folder of trials that cannot be looked into.
        """
        folders = [each.path for cell in _inside(self.folder / "cells") for each in _inside(cell.path)]
        trials = (Path(each) for each in sorted(folders) if _TRIAL.fullmatch(os.path.basename(each)))
        return [record_file(each) for each in trials if may_be(record_file(each))]

    def capture_folder(self, cell: str, number: int) -> Path:
        """The folder of one more training of a cell, which keeps what single operations took and gave."""
        return self.cell_folder(cell) / f"capture-{number:03d}"

    def capture_folders(self, cell: str) -> list[Path]:
        """Those of a cell that are there, in order."""
        return list(takewhile(Path.exists, (self.capture_folder(cell, number) for number in count())))

    def round_folder(self, number: int) -> Path:
        """The folder that whoever works on a round owns."""
        return self.folder / "rounds" / f"round-{number:03d}"

    @property
    def owners_folder(self) -> Path:
        """The folder of what is known of the processes that work on the study."""
        return self.folder / "owners"

    def owner_file(self, owner: str) -> Path:
        """What is known of a process that works on the study; removed at its end."""
        return self.owners_folder / f"{owner}.json"

    def half_made(self) -> list[Path]:
        """The folders of trials and rounds that never came into place."""
        return [*self.folder.glob("cells/*/.trial-*.*.*"), *self.folder.glob("rounds/.round-*.*.*")]

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
        return [path for path in (*named, *sorted(self.plots.glob("*.*"))) if path.is_file()]

    @property
    def plots(self) -> Path:
        """The folder of the report's plots."""
        return self.folder / "plots"

    def plot(self, name: str) -> Path:
        """One of the report's plots."""
        return self.plots / f"{name}.svg"


def _inside(folder: str | Path) -> list["os.DirEntry[str]"]:
    """What is in a folder; nothing where there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def may_be(path: Path) -> bool:
    """Whether there is such a file, or whether nobody can tell: then it should be missed."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


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
