"""Two results of one operation for the same inputs: whether all bits are equal, and how far apart the values are."""

from collections.abc import Sequence

import torch
from torch import Tensor

from runner.operation import Repeated
from runner.worker.call import raw

_INTEGERS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_PARTS = 1 << 22  # elements compared at a time: the comparison in float64 shall not need the memory of the tensors


def compared(first: Sequence[Tensor], again: Sequence[Tensor]) -> Repeated:
    """Whether all bits are equal; if not, how far apart the values are. Waits for the device."""
    ulps: list[int] = []
    relatives: list[float] = []
    equal = True
    for one, other in zip(first, again, strict=True):
        if not same_bits(one, other):
            equal = False
            sizes = _sizes(one, other)
            ulps += [int(ulp) for ulp, _ in sizes]
            relatives += [float(relative) for _, relative in sizes]
    if equal:
        return Repeated(True, 0, 0.0)
    return Repeated(False, max(ulps, default=None), max(relatives, default=None))


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and type are equal bit by bit. Waits for the device."""
    return torch.equal(raw(one), raw(other))


def _sizes(one: Tensor, other: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The largest differences of finite values, part by part: in units in the last place, and relative."""
    if one.is_complex():
        one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
    if one.dtype not in _INTEGERS or one.shape != other.shape:
        return []
    parts = zip(one.reshape(-1).split(_PARTS), other.reshape(-1).split(_PARTS), strict=True)
    finite = ((left, right, left.isfinite() & right.isfinite()) for left, right in parts)
    pairs = [(left[both], right[both]) for left, right, both in finite]
    return [(_ulp(left, right).max(), _relative(left, right).max()) for left, right in pairs if len(left)]


def _ulp(one: Tensor, other: Tensor) -> Tensor:
    """Floating-point numbers of one sign are ordered as their bits; beyond int64 the distance stays at its largest."""
    left, right = (_ordered(tensor) for tensor in (one, other))
    apart = left.abs() + right.abs()
    apart = apart.where(apart >= 0, torch.iinfo(torch.int64).max)
    return torch.where((left < 0) == (right < 0), (left - right).abs(), apart)


def _ordered(tensor: Tensor) -> Tensor:
    bits = tensor.contiguous().view(_INTEGERS[tensor.dtype])
    return torch.where(bits < 0, -(bits & torch.iinfo(bits.dtype).max).long(), bits.long())


def _relative(one: Tensor, other: Tensor) -> Tensor:
    left, right = one.double(), other.double()
    larger = torch.maximum(left.abs(), right.abs())
    return torch.where(larger > 0, (left / 2 - right / 2).abs() / larger * 2, 0.0)  # halves cannot overflow
