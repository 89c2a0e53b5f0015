"""Digests over raw bits, computed where the tensors are.

The bits are taken as 32-bit words. A block of them is hashed to the sum of its words, each times a weight of 64 bits
that belongs to its place, modulo 2**64: multilinear hashing (Carter, Wegman 1979; Dietzfelbinger 1996; Lemire, Kaser
2014). Integer sums are exact in any order, so the result does not depend on how a device schedules its threads, and
nothing but two words has to leave the device. Not cryptographic: it tells accidents apart, not forgeries.

How often do two different contents share a digest? Take a word in which they differ, by d, and let 2**v be the largest
power of 2 that divides d. For any values of the other weights the sums agree for 2**v of the 2**64 values of this
word's weight: with a chance of 2**(v - 64), and v is at most 31, where nothing but the highest bits differ (that is why
the weights may be even). Two lanes with weights of their own agree with a chance of at most 2**-66. The sums of several
blocks are words again and are hashed in the same way with further weights, which adds 2**-66 a level: with four levels,
which no memory fills, 2**-64 in all, for weights drawn at random; here SplitMix64 (Steele, Lea, Flood 2014) stands in.

This module needs torch alone: an attached script loads it into its own interpreter (runner/hook).
"""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS_32, _BITS_33, _BITS_34, _BITS_37 = ((1 << bits) - 1 for bits in (32, 33, 34, 37))
# Words that are summed into one: part of the definition. Few enough that on a CPU weights and products stay in cache.
BLOCK = 1 << 13
# Blocks at once, which do not show in the result: as many as keep the products in the cache of the device.
_BLOCKS = {"cpu": 4, "cuda": 256}
_AT_ONCE = 128  # small tensors that are copied side by side: at most 4 MiB


def as_real(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of numbers, any other as it is; what is only said to be conjugate or negative is so."""
    tensor = tensor.detach().resolve_conj()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).resolve_neg()


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def lanes(tensors: Iterable[Tensor]) -> Tensor:
    """The device's part of a digest: int64 (2,), on the device of the tensors, without waiting for it.

    Covers the bits of all elements in logical order (strides do not matter), tensor after tensor. Shapes and types
    are not in it: they are the same wherever two digests are worth comparing, and `digest` adds them.
    """
    listed = list(tensors)
    return joined([block_sums(listed)])[0] if listed else torch.zeros(2, dtype=torch.int64, device="cpu")


def block_sums(tensors: list[Tensor]) -> Tensor:
    """The first level of a digest: two sums of each block, int64 (blocks, 2)."""
    return _cat([sums for bits in words(tensors) for sums in _sums(bits, 0)])


def joined(sums: list[Tensor]) -> list[Tensor]:
    """The lanes, int64 (2,), that follow from each of these sums of blocks; all lie on one device.

    What is short of a block is filled up with zeros, which add nothing: so all are hashed at once, level after level.
    """
    sums, level = list(sums), 0
    while long := [place for place, one in enumerate(sums) if len(one) > 1]:
        level += 1
        bits = [sums[place].view(torch.int32).flatten() for place in long]
        zeros = bits[0].new_zeros(BLOCK)
        filled = torch.cat([part for one in bits for part in (one, zeros[: -one.numel() % BLOCK])])
        blocks = [-(-one.numel() // BLOCK) for one in bits]
        for place, one in zip(long, _cat(_sums(filled, level)).split(blocks), strict=True):
            sums[place] = one
    return [one[0] for one in sums]


def fits_a_block(tensor: Tensor) -> bool:
    """Whether the bits of a tensor fill no more than a block."""
    return tensor.nbytes <= 4 * BLOCK


def rows(tensors: Sequence[Tensor]) -> Iterator[tuple[list[int], Tensor]]:
    """Tensors of one device that fit a block, side by side: places in `tensors`, and int32 (places, words) of a type.

    Many parameters and gradients are that small: one by one, to start the kernels takes longer than to run them.
    """
    alike: dict[torch.dtype, list[int]] = defaultdict(list)
    for place in sorted(range(len(tensors)), key=lambda place: tensors[place].nbytes):
        alike[tensors[place].dtype].append(place)
    for places in alike.values():
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            yield some, _rows([as_real(tensors[place]).reshape(-1) for place in some])


def row_sums(found: Tensor) -> Tensor:
    """The sums of blocks of each of these rows of words: int64 (rows, 1, 2)."""
    return (found.unsqueeze(1) * weights(0, found.device)[:, : found.shape[1]]).sum(-1).unsqueeze(1)


def _rows(flat: list[Tensor]) -> Tensor:
    """Flat tensors of one type as rows of int32 words, each filled up with zeros."""
    size = 4 // flat[0].itemsize or 1
    width = -(-max(one.numel() for one in flat) // size) * size
    zeros = flat[0].new_zeros(width)
    filled = torch.cat([part for one in flat for part in (one, zeros[one.numel() :])])
    return filled.view(torch.int32).view(len(flat), -1) if width else filled.new_zeros(len(flat), 0, dtype=torch.int32)


def words(tensors: list[Tensor]) -> Iterable[Tensor]:
    """The raw bits as int32 words, one flat tensor a type: few large kernels instead of many small ones."""
    flat = [as_real(tensor).reshape(-1) for tensor in tensors]
    for dtype in dict.fromkeys(tensor.dtype for tensor in flat):
        yield words_of(_cat([tensor for tensor in flat if tensor.dtype == dtype]))


def words_of(flat: Tensor) -> Tensor:
    """The raw bits of a flat tensor of real numbers as int32 words, its last one filled up with zeros."""
    raw = flat.contiguous()
    missing = -raw.nbytes % 4
    if missing or raw.storage_offset() * raw.itemsize % 4:
        raw = torch.cat([raw.view(torch.uint8), raw.new_zeros(missing, dtype=torch.uint8)])
    return raw.view(torch.int32)


def _cat(tensors: list[Tensor]) -> Tensor:
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]  # which would copy even a single one


def _sums(bits: Tensor, level: int) -> list[Tensor]:
    """Two weighted sums a block of these words: int64 (blocks, 2), in parts; the last block may be short."""
    drawn, whole = weights(level, bits.device), bits.numel() // BLOCK
    sums: list[Tensor] = []
    if whole:
        blocks = bits[: whole * BLOCK].view(whole, 1, BLOCK)
        sums = [(some * drawn).sum(-1) for some in blocks.split(_BLOCKS.get(bits.device.type, 4))]
    rest = bits[whole * BLOCK :]
    if rest.numel() or not whole:
        sums.append((rest * drawn[:, : rest.numel()]).sum(-1).view(1, 2))
    return sums


@cache
def weights(level: int, device: torch.device) -> Tensor:
    """A level's weights: int64 (2, BLOCK), what SplitMix64 draws from seed 0, level after level and lane after lane."""
    state = torch.arange(1 + 2 * BLOCK * level, 1 + 2 * BLOCK * (level + 1), device=device) * _signed(_GOLDEN)
    mixed = (state ^ ((state >> 30) & _BITS_34)) * _signed(_MIX_1)
    mixed = (mixed ^ ((mixed >> 27) & _BITS_37)) * _signed(_MIX_2)
    return (mixed ^ ((mixed >> 31) & _BITS_33)).view(2, BLOCK)


def text(both: Tensor, tensors: Iterable[Tensor] = ()) -> str:
    """A digest as 32 hexadecimal digits, from its lanes and the shapes and types of what they cover. Waits."""
    form = ";".join(f"{tensor.dtype}{tuple(tensor.shape)}" for tensor in tensors)
    return hashlib.sha256(array("q", both.tolist()).tobytes() + form.encode()).hexdigest()[:32]


def digest(tensors: Iterable[Tensor]) -> str:
    """The digest of these tensors: types, shapes and bits. Waits for the device."""
    listed = list(tensors)
    return text(lanes(listed), listed)


def sketch(tensors: Iterable[Tensor], size: int = 4096) -> Tensor:
    """A signed sum of all elements into `size` places: float32 (size,) on the CPU.

    The squared Euclidean distance of two sketches is an unbiased estimate of that of the tensors (Alon, Matias, Szegedy
    1996; Charikar, Chen, Farach-Colton 2002), with a relative standard error of sqrt(2 / size) where the differences
    spread over all places, as training's do; more where they meet in few. Signs and places come from an element's
    position, so every process has the same ones.
    """
    parts = [tensor.detach().reshape(-1).double() for tensor in tensors if tensor.is_floating_point()]
    total, position = torch.zeros(size, dtype=torch.float64, device="cpu"), 0
    for part in parts:
        before = position % size  # tensors follow one another: small ones must not all meet in the first places
        padded = torch.cat([part.new_zeros(before), part, part.new_zeros(-(before + part.numel()) % size)])
        place = torch.arange(position - before, position - before + padded.numel(), device=part.device)
        mixed = (place + 1) * _signed(_GOLDEN)
        mixed = (mixed ^ ((mixed >> 32) & _BITS_32)) * _signed(_MIX_2)
        signs = ((mixed >> 40) & 1) * 2 - 1
        total += (padded * signs).view(-1, size).sum(0).cpu()
        position += part.numel()
    return total.float()
