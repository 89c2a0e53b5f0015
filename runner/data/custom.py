"""A user's own data set."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from runner.data.data import Data
from runner.errors import Refusal
from runner.target import call

# What an item must be: dimensions and type of the input, then of the target.
ITEMS = {
    "image": (3, torch.float32, 0, torch.int64),
    "mask": (3, torch.float32, 2, torch.int64),
    "sequence": (2, torch.float32, 0, torch.int64),
    "next": (1, torch.int64, 1, torch.int64),
    "forecast": (2, torch.float32, 1, torch.float32),
}


def load(config: dict[str, Any]) -> Data:
    """What `_target_` returns for `args`: the training and the test set, map-style, with inputs of one shape.

    Items are streamed unless `resident` is true: reading each once would freeze what they draw at random. Raises
    Refusal in one line for a target that cannot be called and for anything else than two sets of fitting items.
    """
    target, view = config["_target_"], config["view"]
    made = call("dataset._target_", target, config["args"])
    if not isinstance(made, tuple | list) or len(made) != 2:
        _refuse(target, "a pair (training set, test set)", made)
    for part in made:
        if not hasattr(part, "__getitem__") or not hasattr(part, "__len__"):
            _refuse(target, "map-style data sets with __getitem__ and __len__", part)
        if len(part) == 0:
            raise Refusal(f"dataset._target_={target}: expected data sets with items, found one of length 0")
    train, test = made
    shape, _ = (_checked_shape(target, view, part[0]) for part in made)
    return Data(view, train, test, shape, config["classes"], bool(config["resident"]), config["workers"])


def _checked_shape(target: str, view: str, item: Any) -> tuple[int, ...]:
    dims, dtype, target_dims, target_dtype = ITEMS[view]
    expected = f"items (input {dtype} of {dims} dimensions, target {target_dtype} of {target_dims})".replace(
        "torch.", ""
    )
    if not isinstance(item, tuple | list) or len(item) != 2:
        _refuse(target, expected, item)
    try:
        pair = default_collate([tuple(item)])
    except TypeError:
        _refuse(target, expected, item)
    wanted = ((dims + 1, dtype), (target_dims + 1, target_dtype))
    if not all(isinstance(value, Tensor) for value in pair) or tuple((v.ndim, v.dtype) for v in pair) != wanted:
        _refuse(target, f"for the view {view} {expected}", item)
    return tuple(pair[0].shape[1:])


def _refuse(target: str, expected: str, found: Any) -> None:
    raise Refusal(f"dataset._target_={target}: expected {expected}, found {_described(found)}")


def _described(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(_described(part) for part in value[:3])}{', ...' if len(value) > 3 else ''})"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return type(value).__name__
