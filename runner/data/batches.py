"""Batches: which items form them in what order, and how they come to the training device."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice, repeat, zip_longest
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from runner.data.augment import Batch, augmented
from runner.data.data import Data, parts_of
from runner.data.nested import moved
from runner.data.residence import Resident
from runner.data.rng import apart
from runner.data.transfer import handed_over
from runner.errors import Refusal

Pick = tuple[int, Tensor]  # the number of a part and the indices of items in it


def steps_per_epoch(data: Data, batch_size: int) -> int:
    """The number of whole batches in one pass over the training set.

    Raises Refusal for a batch larger than the training set, or than its items of one input shape.
    """
    sizes = _sizes(data.train)
    if batch_size > min(sizes):
        of_one_shape = " of one input shape" if len(sizes) > 1 else ""
        raise Refusal(
            f"train.batch_size={batch_size}: the training set has {min(sizes)} items{of_one_shape}; "
            f"choose at most {min(sizes)}"
        )
    return sum(size // batch_size for size in sizes)


def train_batches(
    data: Data, batch_size: int, steps: int, device: torch.device, order_seed: int, augment_seed: int
) -> Iterator[Batch]:
    """The batches of `steps` steps, over as many epochs as it takes; an epoch's incomplete last batch is dropped.

    Which items form which batch depends on `order_seed` alone: not on residence, workers, device or the global
    generators. `augment_seed` starts what changes items at random. Raises Refusal like `steps_per_epoch`, at once.
    """
    steps_per_epoch(data, batch_size)
    generator = torch.Generator().manual_seed(order_seed)
    epochs = (_epoch(_sizes(data.train), batch_size, generator) for _ in repeat(None))
    picks = islice(chain.from_iterable(epochs), steps)
    batches = _fetched(data, data.train, picks, device, augment_seed)
    return augmented(batches, data.view, augment_seed) if data.augment else batches


def test_batches(data: Data, batch_size: int, device: torch.device) -> Iterator[Batch]:
    """All test items in their own order, the last batch as small as it is; training's generators stay untouched."""
    picks = chain.from_iterable(_in_order(part, size, batch_size) for part, size in enumerate(_sizes(data.test)))
    return _fetched(data, data.test, picks, device, seed=0)


def test_sizes(data: Data, batch_size: int) -> list[int]:
    """How many items each of these batches has."""
    return [len(items) for part, size in enumerate(_sizes(data.test)) for _, items in _in_order(part, size, batch_size)]


test_sizes.__test__ = False  # type: ignore[attr-defined]
test_batches.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test of its own


def _sizes(dataset: Dataset[Any]) -> list[int]:
    return [len(part) for part in parts_of(dataset)]  # type: ignore[arg-type]


def _epoch(sizes: list[int], batch_size: int, generator: torch.Generator) -> Iterator[Pick]:
    """Every item at most once, in random order; the parts take turns, a batch each."""
    shuffled = [torch.randperm(size, generator=generator) for size in sizes]
    cut = [order[: len(order) // batch_size * batch_size].reshape(-1, batch_size) for order in shuffled]
    for turn in zip_longest(*cut):
        yield from ((part, items) for part, items in enumerate(turn) if items is not None)


def _in_order(part: int, size: int, batch_size: int) -> Iterator[Pick]:
    for start in range(0, size, batch_size):
        yield part, torch.arange(start, min(start + batch_size, size))


def _fetched(
    data: Data, dataset: Dataset[Any], picks: Iterable[Pick], device: torch.device, seed: int
) -> Iterator[Batch]:
    parts: list[Any] = parts_of(dataset)
    if all(isinstance(part, Resident) for part in parts):
        return _indexed(parts, picks, device)
    loaded = _loaded(data, dataset, picks, device, seed)
    return loaded if data.workers else apart(loaded, seed)


def _indexed(parts: list[Resident], picks: Iterable[Pick], device: torch.device) -> Iterator[Batch]:
    for part, items in picks:
        inputs, targets = parts[part].tensors
        places = handed_over(items, device)
        yield inputs[places], targets[places]


def _loaded(
    data: Data, dataset: Dataset[Any], picks: Iterable[Pick], device: torch.device, seed: int
) -> Iterator[Batch]:
    starts = [0, *accumulate(_sizes(dataset))]
    loader = DataLoader(
        dataset,
        batch_sampler=((items + starts[part]).tolist() for part, items in picks),
        num_workers=data.workers,
        collate_fn=data.collate,
        # A worker's torch, NumPy and random are seeded from this one, so each worker differs and a trial repeats.
        # Without it the loader would draw from the global generator and so disturb dropout.
        generator=torch.Generator().manual_seed(seed),
        multiprocessing_context="fork" if data.workers else None,
        pin_memory=device.type == "cuda",
    )
    try:
        for inputs, targets in loader:
            yield moved(inputs, device), moved(targets, device)
    except Refusal as error:
        # A worker hands over its whole traceback as the message; what is to be read is the last line.
        raise Refusal(str(error).strip().rsplit("Refusal: ", 1)[-1]) from error
