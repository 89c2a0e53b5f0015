"""The characters of one text file, to predict each from those before it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from runner.data.data import Data
from runner.errors import Refusal


def load(config: dict[str, Any]) -> Data:
    """A UTF-8 file in pieces of `length` characters; the last tenth is for testing.

    The symbols are the file's characters in the order of Unicode. Raises Refusal for a file that is no text or too
    short for one piece in each part.
    """
    path, length = Path(config["path"]).expanduser(), config["length"]
    symbols, codes = np.unique(_code_points(path), return_inverse=True)
    border = len(codes) * 9 // 10
    train, test = (_pieces(part, length) for part in (codes[:border], codes[border:]))
    if len(test) == 0 or len(train) == 0:
        longest = max(min(border, len(codes) - border) - 1, 0)
        raise Refusal(f"dataset.length={length}: {path} has {len(codes)} characters; choose at most {longest}")
    return Data("next", train, test, (length,), len(symbols), config["resident"], config["workers"])


def _code_points(path: Path) -> np.ndarray:
    try:
        return np.frombuffer(path.read_text(encoding="utf-8").encode("utf-32-le"), np.uint32)
    except UnicodeDecodeError as error:
        raise Refusal(f"dataset.path={path}: is no UTF-8 text ({error.reason} at byte {error.start})") from error


def _pieces(codes: np.ndarray, length: int) -> TensorDataset:
    count = max(len(codes) - 1, 0) // length
    whole = torch.from_numpy(codes.astype(np.int64))[: count * length + 1]
    return TensorDataset(whole[:-1].reshape(count, length), whole[1:].reshape(count, length))
