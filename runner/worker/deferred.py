"""Digests and finiteness of many tensors: computed where the tensors are, without waiting, and read all at once."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from runner.worker.bits import as_real, has_bits
from runner.worker.digest import BLOCK, block_sums, fits_a_block, joined, row_sums, rows, words_of

_RANGED = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_FLAGS = 1024  # that are set to 0 at once
_CODES = (None, "inf", "nan")

Places = tuple[int | None, int | None]  # of a tensor's digest, and of whether it is finite; None where it has none


class Flag(NamedTuple):
    """What a pass over a tensor found, a code as in `_CODES`: at this place of int32 (n,)."""

    zeros: Tensor
    place: int


class Deferred:
    """What was asked of tensors since the last reading; the numbers given out are places in what is read."""

    def __init__(self) -> None:
        self._sums: list[Tensor] = []
        self._finite: list[tuple[Tensor, Tensor] | Flag] = []  # the lowest and highest element, or what a pass found
        self._flags: dict[torch.device, Iterator[Flag]] = {}

    def look(self, tensor: Tensor, finite: bool) -> Places:
        """Ask for the digest of a tensor's bits, and if wanted whether it has NaNs or infinities."""
        if not has_bits(tensor):
            return None, None
        real = as_real(tensor)
        finite = finite and real.numel() > 0 and real.dtype in _RANGED
        one_pass = in_one_pass(real.device) if real.numel() else None
        if one_pass is None:
            return self._add(block_sums([real]), torch.aminmax(real) if finite else None)  # a NaN is both
        bits = words_of(real.reshape(-1))
        if not finite or not one_pass.tells(real.dtype):
            return self._add(one_pass.block_sums(bits), torch.aminmax(real) if finite else None)
        flag = self._flag(real.device)
        return self._add(one_pass.block_sums(bits, real.dtype, *flag), flag)

    def look_at_each(self, tensors: Sequence[Tensor], finite: bool) -> list[Places]:
        """Ask for that of many tensors of one device, which takes less than one by one."""
        small = [place for place, one in enumerate(tensors) if has_bits(one) and one.numel() and fits_a_block(one)]
        found: dict[int, Places] = {}
        for places, bits in rows([tensors[place] for place in small]):
            dtype = as_real(tensors[small[places[0]]]).dtype
            ranged = finite and dtype in _RANGED
            extremes = zip(*bits.view(dtype).aminmax(dim=1), strict=True) if ranged else [None] * len(places)
            for place, sums, both in zip(places, row_sums(bits), extremes, strict=True):
                found[small[place]] = self._add(sums, both)
        return [found[place] if place in found else self.look(one, finite) for place, one in enumerate(tensors)]

    def read(self) -> tuple[list[str], list[str | None]]:
        """All digests, and "nan", "inf" or None for all that may not be finite. Waits for the devices."""
        for device in {one.device for one in self._sums if one.is_cuda}:
            torch.cuda.synchronize(device)  # they may come from several streams
        digests = [raw.tobytes().hex() for raw in _gathered(_joined(self._sums))]
        finite = _finiteness(self._finite)
        self._sums, self._finite, self._flags = [], [], {}
        return digests, finite

    def _add(self, sums: Tensor, finite: tuple[Tensor, Tensor] | Flag | None) -> Places:
        self._sums.append(sums)
        if finite is None:
            return len(self._sums) - 1, None
        self._finite.append(finite)
        return len(self._sums) - 1, len(self._finite) - 1

    def _flag(self, device: torch.device) -> Flag:
        """A place of its own among zeros on a device."""
        flag = next(self._flags.get(device, iter(())), None)
        if flag is None:
            zeros = torch.zeros(_FLAGS, dtype=torch.int32, device=device)
            self._flags[device] = (Flag(zeros, place) for place in range(_FLAGS))
            flag = next(self._flags[device])
        return flag


@cache
def in_one_pass(device: torch.device) -> ModuleType | None:
    """What looks at a tensor in one pass on this device, where Triton is there, works, and finds the same sums."""
    if device.type != "cuda" or torch.version.hip is not None:
        return None
    bits = torch.arange(3 * BLOCK + 1, dtype=torch.int32, device=device) * 40503
    try:
        from runner.worker import one_pass

        same = torch.equal(one_pass.block_sums(bits), block_sums([bits]))
    # Without Triton, without the C compiler that it starts kernels with, with a driver too old for it, in a home where
    # nothing can be written: each fails in its own way, and PyTorch's own operations do the same in more time.
    except Exception:
        return None
    return one_pass if same else None


def _joined(sums: list[Tensor]) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    for places in _alike([one.device for one in sums]):
        found |= zip(places, joined([sums[place] for place in places]), strict=True)
    return [found[place] for place in range(len(sums))]


def _gathered(tensors: list[Tensor]) -> list[Any]:
    """Each small tensor as a NumPy array, copied from its device together with all others of its type."""
    found: dict[int, Any] = {}
    for places in _alike([(one.device, one.dtype) for one in tensors]):
        stacked = torch.stack([tensors[place] for place in places])
        stacked = stacked.double() if stacked.dtype.is_floating_point else stacked
        found |= zip(places, stacked.cpu().numpy(), strict=True)
    return [found[place] for place in range(len(tensors))]


def _alike(keys: list[Any]) -> list[list[int]]:
    """The places of equal keys."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        alike[key].append(place)
    return list(alike.values())


def _finiteness(asked: list[tuple[Tensor, Tensor] | Flag]) -> list[str | None]:
    """What is not finite, of lowest and highest elements, and of flags, each row of which is copied once."""
    numbers = iter(_gathered([one for some in asked if not isinstance(some, Flag) for one in some]))
    rows: dict[int, list[int]] = {id(one.zeros): [] for one in asked if isinstance(one, Flag)}
    found = []
    for one in asked:
        if isinstance(one, Flag):
            codes = rows[id(one.zeros)] = rows[id(one.zeros)] or one.zeros.tolist()
            found.append(_CODES[codes[one.place]])
        else:
            found.append(_name(float(next(numbers)), float(next(numbers))))
    return found


def _name(low: float, high: float) -> str | None:
    if low != low or high != high:
        return "nan"
    return "inf" if low == float("-inf") or high == float("inf") else None
