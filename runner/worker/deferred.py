"""Digests and finiteness of many tensors: computed where the tensors are, without waiting, and read all at once."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from runner.worker.bits import as_real, has_bits
from runner.worker.digest import lanes, lanes_of_each

_RANGED = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


class Deferred:
    """What was asked of tensors since the last reading; the numbers given out are places in what is read."""

    def __init__(self) -> None:
        self._lanes: list[Tensor] = []
        self._extremes: list[tuple[Tensor, Tensor]] = []

    def digest(self, tensor: Tensor) -> int | None:
        """Ask for the digest of a tensor's bits; None where it has none."""
        if not has_bits(tensor):
            return None
        self._lanes.append(lanes([tensor]))
        return len(self._lanes) - 1

    def digest_each(self, tensors: Sequence[Tensor]) -> list[int | None]:
        """Ask for the digests of many tensors of one device, which takes less than one by one."""
        readable = [tensor for tensor in tensors if has_bits(tensor)]
        places = iter(range(len(self._lanes), len(self._lanes) + len(readable)))
        self._lanes += lanes_of_each(readable)
        return [next(places) if has_bits(tensor) else None for tensor in tensors]

    def finite(self, tensor: Tensor) -> int | None:
        """Ask whether a tensor has NaNs or infinities; None for what cannot."""
        if not has_bits(tensor) or not tensor.numel():
            return None
        real = as_real(tensor)
        if real.dtype not in _RANGED:
            return None
        self._extremes.append(torch.aminmax(real))  # a NaN is both
        return len(self._extremes) - 1

    def read(self) -> tuple[list[str], list[str | None]]:
        """All digests, and "nan", "inf" or None for all that may not be finite. Waits for the devices."""
        digests = [raw.tobytes().hex() for raw in _gathered(self._lanes)]
        flat = _gathered([one for pair in self._extremes for one in pair])
        finite = [_name(float(low), float(high)) for low, high in zip(flat[::2], flat[1::2], strict=True)]
        self._lanes, self._extremes = [], []
        return digests, finite


def _gathered(tensors: list[Tensor]) -> list[Any]:
    """Each small tensor as a NumPy array, copied from its device together with all others of its type."""
    alike: dict[tuple[torch.device, torch.dtype], list[int]] = defaultdict(list)
    for place, tensor in enumerate(tensors):
        alike[tensor.device, tensor.dtype].append(place)
    found: dict[int, Any] = {}
    for (device, dtype), places in alike.items():
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # they may come from several streams
        stacked = torch.stack([tensors[place] for place in places])
        stacked = stacked.double() if dtype.is_floating_point else stacked
        found |= zip(places, stacked.cpu().numpy(), strict=True)
    return [found[place] for place in range(len(tensors))]


def _name(low: float, high: float) -> str | None:
    if low != low or high != high:
        return "nan"
    return "inf" if low == float("-inf") or high == float("inf") else None
