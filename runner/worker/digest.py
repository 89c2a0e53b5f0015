"""Digests over raw bits, computed where the tensors are.

A position-weighted sum of mixed 64-bit words. Integer sums are exact in any order, so the result does not depend on
how a device schedules its threads, and nothing but two words has to leave the device. Not cryptographic: it tells
accidents apart, not forgeries. The mixing constants are those of SplitMix64 (Steele, Lea, Flood 2014).
"""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS_32, _BITS_37 = (1 << 32) - 1, (1 << 37) - 1


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def lanes(tensors: Iterable[Tensor]) -> Tensor:
    """The device's part of a digest: int64 (2,), on the device of the tensors, without waiting for it.

    Covers the bits of all elements in logical order (strides do not matter), tensor after tensor. Shapes and types
    are not in it: they are the same wherever two digests are worth comparing, and `digest` adds them.
    """
    total, position = None, 0
    for words in _words(list(tensors)):
        chunk = 1 << 22 if words.is_cuda else 1 << 16  # on a CPU small enough to stay in the cache
        for part in words.split(chunk):
            mixed = _mix(part, position)
            total = mixed if total is None else total + mixed
            position += part.numel()
    return torch.zeros(2, dtype=torch.int64) if total is None else total


def _words(tensors: list[Tensor]) -> Iterable[Tensor]:
    """The raw bits as int64 words, one flat tensor a type: few large kernels instead of many small ones."""
    flat = [_real(tensor.detach()).reshape(-1) for tensor in tensors]
    for dtype in dict.fromkeys(tensor.dtype for tensor in flat):
        same = [tensor for tensor in flat if tensor.dtype == dtype]
        raw = (torch.cat(same) if len(same) > 1 else same[0].contiguous()).view(torch.uint8)
        missing = -raw.numel() % 8
        if missing or raw.storage_offset() % 8:
            raw = torch.cat([raw, raw.new_zeros(missing)])
        yield raw.view(torch.int64)


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _mix(words: Tensor, position: int) -> Tensor:
    """Two sums over the words of one chunk, each word mixed with its position."""
    place = torch.arange(position + 1, position + 1 + words.numel(), device=words.device)
    mixed = (words ^ (place * _signed(_GOLDEN))) * _signed(_MIX_1)
    mixed = (mixed ^ ((mixed >> 32) & _BITS_32)) * _signed(_MIX_2)
    other = (mixed ^ ((mixed >> 27) & _BITS_37)) * _signed(_GOLDEN)
    return torch.stack([mixed.sum(), (other ^ ((other >> 32) & _BITS_32)).sum()])


def text(words: Tensor, tensors: Iterable[Tensor] = ()) -> str:
    """A digest as 32 hexadecimal digits, from its lanes and the shapes and types of what they cover. Waits."""
    form = ";".join(f"{tensor.dtype}{tuple(tensor.shape)}" for tensor in tensors)
    return hashlib.sha256(words.cpu().numpy().tobytes() + form.encode()).hexdigest()[:32]


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
    total, position = torch.zeros(size, dtype=torch.float64), 0
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
