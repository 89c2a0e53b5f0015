"""A loaded data set: training items, test items and what a model must know about them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

CUSTOM = "custom"  # the view of which only a user's own model knows the form


@dataclass(frozen=True, eq=False)
class Data:
    """Training and test items in one view (see runner.data for what an item is in which view).

    train, test: map-style data sets; BySize where inputs differ in shape.
    input_shape: of one input without the batch, None where a dimension varies.
    classes: the number of classes or symbols; in the view "forecast" of predicted values.
    resident: keep the items on the training device; None: if they are small. workers: processes that read others.
    augment: change training images at random.
    collate: makes a batch of items, None as PyTorch does it; brought: a user's own training set, which may bring a
    loss, metrics and predictions (see runner.worker.contract).
    """

    view: str
    train: Dataset[Any]
    test: Dataset[Any]
    input_shape: tuple[int | None, ...]
    classes: int
    resident: bool | None = None
    workers: int = 0
    augment: bool = False
    collate: Callable[[list[Any]], Any] | None = None
    brought: Any = None


class BySize(ConcatDataset[tuple[Tensor, Tensor]]):
    """Parts with inputs of one shape each; a batch never mixes parts, and batches take them in turn."""

    @classmethod
    def of(cls, parts: Sequence[Dataset[Any]]) -> Dataset[Any]:
        """The parts as one data set; a single part is one as it is."""
        return parts[0] if len(parts) == 1 else cls(parts)


def parts_of(dataset: Dataset[Any]) -> list[Dataset[Any]]:
    """The parts of which the inputs have one shape each."""
    return list(dataset.datasets) if isinstance(dataset, BySize) else [dataset]


def common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int | None, ...]:
    """What all shapes have in common: ((3, 8, 8), (3, 9, 8)) -> (3, None, 8)."""
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip_longest(*shapes))


def described(data: Data) -> str:
    """The data in words, for messages."""
    if data.view == CUSTOM:
        return "custom data"
    return f"{data.view} data with inputs of {data.input_shape} and {data.classes} classes"


def every_fifth(count: int) -> tuple[list[int], list[int]]:
    """Split the indices below `count`: the fifth, tenth, ... item is for testing, the others are for training."""
    return [i for i in range(count) if i % 5 != 4], list(range(4, count, 5))
