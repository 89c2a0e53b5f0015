"""A user's own data set."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset, default_collate

from runner.data.data import CUSTOM, Data
from runner.data.nested import described
from runner.errors import Refusal
from runner.target import blaming, call

# What an item must be: dimensions and type of the input, then of the target.
ITEMS = {
    "image": (3, torch.float32, 0, torch.int64),
    "mask": (3, torch.float32, 2, torch.int64),
    "sequence": (2, torch.float32, 0, torch.int64),
    "next": (1, torch.int64, 1, torch.int64),
    "forecast": (2, torch.float32, 1, torch.float32),
}


def load(config: dict[str, Any]) -> Data:
    """What `_target_` returns for `args`: the training and the test set, map-style.

    Items are streamed unless `resident` is true: reading each once would freeze what they draw at random. Raises
    Refusal in one line for a target that cannot be called and for anything else than two sets of fitting items.
    """
    key, view = f"dataset._target_={config['_target_']}", config["view"]
    made = _made(config)
    own = getattr(made[0], "collate_fn", None)
    collate = partial(stacked, key, own)
    inputs, _ = (_checked(key, view, collate([_first(key, part)]), own is None, part) for part in made)
    if config["resident"] and (own or view == CUSTOM):
        why = "with a collate_fn" if own else f"in the view {CUSTOM}"
        raise Refusal(f"dataset.resident=True: items are streamed {why}; leave it out")
    train, test = (named(part, f"{key}: the {role} set") for part, role in zip(made, ("training", "test"), strict=True))
    return Data(
        view=view,
        train=train,
        test=test,
        input_shape=tuple(inputs.shape[1:]) if isinstance(inputs, Tensor) else (),
        classes=config["classes"] or 0,
        resident=bool(config["resident"]),
        workers=config["workers"],
        collate=collate,
        brought=made[0],
    )


class Named(Dataset[Any]):
    """A user's items; what reading one of them raises says whose it is and which."""

    def __init__(self, items: Any, name: str):
        self._items, self._name = items, name

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        with blaming(f"{self._name}, item {index}"):
            return self._items[index]

    def __getattr__(self, name: str) -> Any:
        """Whatever else the user's set has: a loader's worker hands this one out in its place."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._items, name)


class NamedBatches(Named):
    """The same of items that are read a batch at a time."""

    def __getitems__(self, indices: list[int]) -> Any:
        """The items at these places, as PyTorch asks for them."""
        with blaming(f"{self._name}, items {', '.join(map(str, indices))}"):
            return self._items.__getitems__(indices)


def named(items: Any, name: str) -> Any:
    """The items under a name for messages; tensors in memory raise nothing, and are taken as a whole where they are."""
    if isinstance(items, TensorDataset):
        return items
    return (NamedBatches if getattr(items, "__getitems__", None) else Named)(items, name)


def _made(config: dict[str, Any]) -> Any:
    """The two sets."""
    target = config["_target_"]
    with blaming(f"dataset._target_={target}"):
        made = call("dataset._target_", target, config["args"])
    if not isinstance(made, tuple | list) or len(made) != 2:
        _refuse(f"dataset._target_={target}", "a pair (training set, test set)", made)
    for part in made:
        if not hasattr(part, "__getitem__") or not hasattr(part, "__len__"):
            _refuse(f"dataset._target_={target}", "map-style data sets with __getitem__ and __len__", part)
        with blaming(f"dataset._target_={target}: its length"):
            length = len(part)
        if length == 0:
            raise Refusal(f"dataset._target_={target}: expected data sets with items, found one of length 0")
    return made


def _first(key: str, part: Any) -> Any:
    with blaming(f"{key}: its first item"):
        item = part[0]
    if not isinstance(item, tuple | list) or len(item) != 2:
        _refuse(key, "items (input, target)", item)
    return tuple(item)


def stacked(key: str, own: Callable[[list[Any]], Any] | None, items: list[Any]) -> Any:
    """A batch of these items, by the user's function or as PyTorch does it. Raises Refusal for items that do not fit.

    `key` is the setting that named the data set.
    """
    if own:
        with blaming(f"{key}: collate_fn of {len(items)} items {described(items[0])}"):
            return own(items)
    try:
        return default_collate([tuple(item) for item in items])
    except (RuntimeError, TypeError) as error:
        forms = list(dict.fromkeys(map(described, items)))
        found = f"{forms[0]} and {forms[1]} in one batch" if len(forms) > 1 else forms[0]
        wanted = "numbers, arrays or tensors of one shape, or a collate_fn of the training set"
        raise Refusal(f"{key}: expected items of {wanted}, found {found}") from error


def _checked(key: str, view: str, batch: Any, plain: bool, part: Any) -> Any:
    """The inputs of a batch of one item, if it is what the view needs; `plain` where PyTorch has made it."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        _refuse(key, "batches (inputs, targets) from collate_fn", batch)
    if view == CUSTOM:
        return batch[0]
    dims, dtype, target_dims, target_dtype = ITEMS[view]
    wanted = ((dims + 1, dtype), (target_dims + 1, target_dtype))
    if not all(isinstance(value, Tensor) for value in batch) or tuple((v.ndim, v.dtype) for v in batch) != wanted:
        more = "" if plain else " and the batch"
        form = f"(input {dtype} of {dims} dimensions, target {target_dtype} of {target_dims}{more})"
        _refuse(key, f"for the view {view} items {form}".replace("torch.", ""), part[0] if plain else tuple(batch))
    return batch[0]


def _refuse(key: str, expected: str, found: Any) -> None:
    raise Refusal(f"{key}: expected {expected}, found {described(found)}")
