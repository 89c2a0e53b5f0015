"""The global random generators of Python, NumPy and torch, kept out of other code's way."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch

T = TypeVar("T")
States = tuple[Any, Any, Any]


@contextmanager
def untouched() -> Iterator[None]:
    """Leave the global generators as they were, whatever the block draws from them."""
    before = _states()
    try:
        yield
    finally:
        _restore(before)


def apart(source: Iterator[T], seed: int) -> Iterator[T]:
    """Draw from `source` under generators of its own, started by `seed` (0 to 2**64 - 1).

    Code in the source may use the global generators as it likes: between two items the consumer finds its own.
    """
    with untouched():
        random.seed(seed)
        np.random.seed(np.random.SeedSequence(seed).generate_state(4))
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach the device's generators too
        inside = _states()
    while True:
        with untouched():
            _restore(inside)
            try:
                item = next(source)
            except StopIteration:
                return
            inside = _states()
        yield item


def _states() -> States:
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def _restore(states: States) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
