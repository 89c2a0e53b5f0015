"""Studies to compare: the same cells with other bits from a stated step on, somewhere else."""

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from factory import GPU, Plant, _digests, digest, make_cell, make_series, make_study

from runner import compare
from runner.cell import Cell
from runner.layout import record_file, series_file
from runner.study import Study

HERE = GPU | {"threads": 16, "cudnn": 91900, "cuda": "13.0", "driver": "580.1", "code": None, "workspace": None}
LATE = Plant(loss_step=5, weights_step=8, evaluation=True)
STEADY = Plant(noise=0.0005)
OTHER = 7  # the number of the trial whose bits are the other ones


def steady(folder: Path, *cells: Cell, rounds: int = 3, plant: Plant = STEADY, **environment: Any) -> Study:
    """A study whose trials all repeat, unless something is planted in them."""
    where = HERE | environment
    plants = [(cell, plant) for cell in cells or (make_cell("deterministic"),)]
    return make_study(folder, plants, rounds, environment=lambda cell, number: where)


def moved(folder: Path, *cells: Cell, parts: Plant, rounds: int = 3, initial: str = "", **environment: Any) -> Study:
    """The like, whose trials are equal among themselves and part from those of `steady` as `parts` says."""
    study = steady(folder, *cells, rounds=rounds, **environment)
    for record in study.records():
        where = study.trial_folder(record.cell, record.number)
        digests = _digests(OTHER, parts)
        if initial:
            digests = replace(digests, initial=digest(initial))
        make_series(OTHER, parts).write(series_file(where))
        replace(record, digests=digests).write(record_file(where))
    return study


def called(main: Callable[[], int], *arguments: object) -> tuple[int, list[str], str]:
    """Exit code, lines and errors of a command in this process."""
    said, errors = io.StringIO(), io.StringIO()
    argv = patch.object(sys, "argv", ["command", *map(str, arguments)])
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors), argv:
        code = main()
    return code, said.getvalue().splitlines(), errors.getvalue()


def told(*arguments: object) -> tuple[int, list[str], str]:
    """Those of `python -m runner.compare`."""
    return called(compare.main, *arguments)
