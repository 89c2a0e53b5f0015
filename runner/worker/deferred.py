"""Digests and finiteness of many tensors: computed where the tensors are, without waiting, and read all at once."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from runner.worker.call import is_plain
from runner.worker.digest import lanes

_DTYPES = {
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
}
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

    def finite(self, tensor: Tensor) -> int | None:
        """Ask whether a tensor has NaNs or infinities; None for what cannot."""
        if not has_bits(tensor) or not tensor.numel():
            return None
        real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        if real.dtype not in _RANGED:
            return None
        self._extremes.append(torch.aminmax(real.detach()))  # a NaN is both
        return len(self._extremes) - 1

    def read(self) -> tuple[list[str], list[str | None]]:
        """All digests, and "nan", "inf" or None for all that may not be finite. Waits for the devices."""
        digests = [raw.tobytes().hex() for raw in _gathered(self._lanes)]
        flat = _gathered([one for pair in self._extremes for one in pair])
        finite = [_name(float(low), float(high)) for low, high in zip(flat[::2], flat[1::2], strict=True)]
        self._lanes, self._extremes = [], []
        return digests, finite


def has_bits(tensor: Tensor) -> bool:
    """Whether a tensor lies in memory as plain numbers: it is not sparse, quantised, nested, on meta or a subclass."""
    return is_plain(tensor) and not tensor.is_nested and tensor.dtype in _DTYPES


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
