"""One trial of a cell in a process of its own, without a study around it."""

from pathlib import Path

from conftest import TESTS

from runner import isolate
from runner.cell import Cell
from runner.record import Record
from runner.study import Study
from runner.trial import Trial


def one_trial(cell: Cell, folder: Path, number: int = 0) -> tuple[Record, Path]:
    """Do the trial with this number on a CPU; returns its record and its folder."""
    trial = Trial.of(cell, number, 0, "cpu")
    claimed = Study.ask(folder / "study", {"rounds": number + 1}, [cell]).claim(trial, "me")
    assert claimed is not None
    return isolate.run(trial, claimed, str(TESTS), 280), claimed
