"""Where items live: small data sets on the training device, so that no step waits for them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from runner.data.data import BySize, Data, parts_of
from runner.data.nested import described
from runner.data.rng import untouched
from runner.errors import Refusal

LIMIT = 2**30  # bytes


class Resident(TensorDataset):
    """Items that lie on the training device as two tensors, inputs and targets."""


def place(data: Data, device: torch.device) -> Data:
    """Put the items on the device once if they are asked to be resident, or are small; else return the data as is.

    Items that are read from files are all read here. Raises Refusal naming a file that cannot be read.
    """
    resident = data.resident
    if resident is None:
        resident = _size(data.train) + _size(data.test) <= LIMIT
    if not resident:
        return data
    with untouched():
        return replace(data, train=_placed(data.train, device), test=_placed(data.test, device))


def _placed(dataset: Dataset[Any], device: torch.device) -> Dataset[Any]:
    parts = [Resident(*(tensor.to(device) for tensor in _tensors(part))) for part in parts_of(dataset)]
    return BySize.of(parts)


def _size(dataset: Dataset[Any]) -> int:
    """Bytes of all items, decoded."""
    parts: list[Any] = parts_of(dataset)
    return sum(len(part) * sum(tensor.nbytes for tensor in _pair(part[0])) for part in parts)


def _tensors(part: Any) -> tuple[Tensor, ...]:
    if isinstance(part, TensorDataset):
        return part.tensors
    columns = tuple(torch.empty((len(part), *tensor.shape), dtype=tensor.dtype) for tensor in _pair(part[0]))
    for index in range(len(part)):
        item = _pair(part[index])
        if [one.shape for one in item] != [column.shape[1:] for column in columns]:
            raise Refusal(f"item {index} is {described(tuple(item))}, the first is {described(tuple(_pair(part[0])))}")
        for column, value in zip(columns, item, strict=True):
            column[index] = value
    return columns


def _pair(item: Any) -> list[Tensor]:
    return [torch.as_tensor(value) for value in item]
