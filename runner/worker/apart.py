"""How far two results lie apart, worked out where they are: what runner.size tells of copies on the host."""

from collections.abc import Sequence

import torch
from torch import Tensor

from runner.worker.bits import as_real, raw

_PART = 1 << 22  # elements at a time: in int64 all at once could need several times the memory of what is compared


def apart(first: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    """The largest distance in ulp, the largest relative difference, and ||other - first|| / ||first||: float64 (3,).

    Over the floating-point tensors together, which are alike in number, shapes and types; all 0 if there are none. NaN
    counts in none of the three, infinite values in the first alone. Without waiting for the device.
    """
    pairs = [(as_real(one), as_real(two)) for one, two in zip(first, other, strict=True) if one.is_floating_point()]
    parts = [
        _apart(a, b)
        for one, two in pairs
        for a, b in zip(one.reshape(-1).split(_PART), two.reshape(-1).split(_PART), strict=True)
        if a.numel()
    ]
    if not parts:
        return torch.zeros(3, dtype=torch.float64)
    found = torch.stack(parts)
    off, norm = found[:, 2:].sum(0).sqrt()
    return torch.stack([*found[:, :2].amax(0), torch.where(off > 0, off / norm, off)])


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """The largest of both distances, and the sums of the squared differences and values: float64 (4,)."""
    numbers = ~(one.isnan() | other.isnan())
    ulp = torch.where(numbers, (_ordered(one) - _ordered(other)).abs(), 0).amax()
    finite = one.isfinite() & other.isfinite()
    a, b = (torch.where(finite, values.double(), 0.0) for values in (one, other))
    larger = torch.maximum(a.abs(), b.abs())
    relative = torch.where(larger > 0, (a - b).abs() / larger, 0.0).amax()
    return torch.stack([ulp.double(), relative, (a - b).square().sum(), a.square().sum()])


def _ordered(values: Tensor) -> Tensor:
    """Integers in the order of the numbers, the next number one further: as runner.size has it, but for float64.

    There the two ends lie further apart than an int64 tells; results of one module never do.
    """
    bits = raw(values)
    least = torch.iinfo(bits.dtype).min
    return torch.where(bits < 0, least - bits.long(), bits.long())
