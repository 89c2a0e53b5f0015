"""Two results of one operation for the same inputs: whether all bits are equal, and how far apart the values are."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch

from runner.size import Size, size_of
from runner.worker.bits import as_real, output_of, raw


def compared(first: Sequence[Tensor], again: Sequence[Tensor]) -> Size:
    """How far two results lie apart; only those tensors leave their device whose bits differ. Waits for the device.

    Results of other shapes, which depend on values, are other ones altogether.
    """
    with _DisableTorchDispatch():
        elements = sum(as_real(tensor).numel() for tensor in first)
        if [tensor.shape for tensor in first] != [tensor.shape for tensor in again]:
            return Size(elements, max(elements, 1), None, None)
        pairs = zip(first, again, strict=True)
        differing = [(one, other) for one, other in pairs if not torch.equal(raw(one), raw(other))]
        if not differing:
            return Size(elements, 0, 0, 0.0)
        sides = [[output_of(tensor) for tensor in side] for side in zip(*differing, strict=True)]
    return replace(size_of(*sides), elements=elements)
