"""The numbers of a CSV file, to predict the next row from those before it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from runner.data.data import Data
from runner.errors import Refusal


def load(config: dict[str, Any]) -> Data:
    """The numeric columns in windows of `length` rows, the last fifth for testing.

    Columns are standardised by mean and deviation of the training rows; a window lies wholly in one part. Raises
    Refusal for a file that is no CSV, for columns that are not there or not numeric, for gaps and for too few rows.
    """
    path, length = Path(config["path"]).expanduser(), config["length"]
    rows = _rows(path, config["columns"])
    border = len(rows) * 4 // 5
    shortest = min(border, len(rows) - border)
    if shortest <= length:
        raise Refusal(f"dataset.length={length}: {path} has {len(rows)} rows; choose at most {max(shortest - 1, 0)}")
    deviation = rows[:border].std(axis=0)
    scaled = (rows - rows[:border].mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    values = torch.from_numpy(scaled.astype(np.float32))
    train, test = (TensorDataset(*_windows(part, length)) for part in (values[:border], values[border:]))
    columns = values.shape[1]
    return Data("forecast", train, test, (length, columns), columns, config["resident"], config["workers"])


def _windows(rows: Tensor, length: int) -> tuple[Tensor, Tensor]:
    return rows[:-1].unfold(0, length, 1).transpose(1, 2), rows[length:]


def _rows(path: Path, columns: list[str]) -> np.ndarray:
    """Read float64 (rows, columns)."""
    import pandas  # half a second to import: only who needs it waits

    try:
        table = pandas.read_csv(path)
    except ValueError as error:  # pandas' own errors and undecodable bytes alike
        raise Refusal(f"dataset.path={path}: is no CSV file ({error})") from error
    numeric = [str(name) for name in table.select_dtypes("number").columns]
    chosen = columns or numeric
    if unknown := [name for name in chosen if name not in numeric]:
        raise Refusal(f"dataset.columns={unknown[0]}: numeric in {path} are {', '.join(numeric) or 'none'}")
    if not chosen:
        raise Refusal(f"dataset.path={path}: has no numeric column")
    rows: np.ndarray = table[chosen].to_numpy(np.float64)
    if len(gaps := np.argwhere(~np.isfinite(rows))):
        row, column = gaps[0]
        raise Refusal(f"dataset.path={path}: no finite number in data row {row + 1}, column {chosen[column]}; fill it")
    return rows
