"""The first level of a digest in one pass over a GPU's memory, and on the way whether all elements are finite.

PyTorch's own operations write the product of every word with its weights and read it again, some nine times the memory
of the tensor itself. This kernel reads each word once. What it gives is bit by bit what `digest.block_sums` gives.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

from runner.worker.digest import BLOCK, weights

# By type: the exponent whose elements are not finite, and how many elements a word of 32 bits holds.
_EXPONENT = {
    torch.float32: (0x7F800000, 1),
    torch.bfloat16: (0x7F80, 2),
    torch.float16: (0x7C00, 2),
}
# Blocks that a program sums side by side, words of each at once, and warps: the fastest on an H200 for each number of
# blocks. Many keep the whole device busy and share the weights that were read; few are spread over more programs.
_MANY, _SOME, _FEW = (8, 256, 8), (2, 1024, 8), (1, 2048, 8)
_MANY_FROM, _SOME_FROM = 3000, 1024


@triton.jit(do_not_specialize=["place", "total"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    words,
    weights,
    sums,
    worst,
    place,
    total,
    block: tl.constexpr,
    rows: tl.constexpr,
    part: tl.constexpr,
    exponent: tl.constexpr,
    halves: tl.constexpr,
):
    numbers = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    one = tl.zeros((rows, part), tl.int64)
    other = tl.zeros((rows, part), tl.int64)
    found = tl.zeros((rows, part), tl.int32)
    for start in range(0, block, part):
        places = start + tl.arange(0, part)
        at = numbers[:, None] * block + places[None, :]
        word = tl.load(words + at, mask=at < total, other=0)
        one += word.to(tl.int64) * tl.load(weights + places)[None, :]
        other += word.to(tl.int64) * tl.load(weights + block + places)[None, :]
        if halves == 1:
            size = word & 0x7FFFFFFF
            found = tl.maximum(found, (size >= exponent).to(tl.int32) + (size > exponent).to(tl.int32))
        if halves == 2:
            low = word & 0x7FFF
            high = (word >> 16) & 0x7FFF
            found = tl.maximum(found, (low >= exponent).to(tl.int32) + (low > exponent).to(tl.int32))
            found = tl.maximum(found, (high >= exponent).to(tl.int32) + (high > exponent).to(tl.int32))
    there = numbers * block < total
    tl.store(sums + 2 * numbers, tl.sum(one, 1), mask=there)
    tl.store(sums + 2 * numbers + 1, tl.sum(other, 1), mask=there)
    if halves > 0:
        most = tl.max(tl.max(found, 1), 0)
        if most > 0:
            tl.atomic_max(worst + place, most)  # of integers: the order of the programs does not show


def tells(dtype: torch.dtype) -> bool:
    """Whether `block_sums` can say of elements of this type whether they are finite."""
    return dtype in _EXPONENT


def block_sums(bits: Tensor, dtype: torch.dtype | None = None, worst: Tensor | None = None, place: int = 0) -> Tensor:
    """Two weighted sums a block of these words, int64 (blocks, 2), on their device and without waiting for it.

    bits: int32 (n,), n at least 1. worst: int32 (m,); its number at `place` is raised to 1 where an element of
    `dtype`, a type that `tells` knows, is infinite, and to 2 where one is NaN.
    """
    blocks = -(-bits.numel() // BLOCK)
    rows, part, warps = _MANY if blocks >= _MANY_FROM else _SOME if blocks >= _SOME_FROM else _FEW
    exponent, halves = _EXPONENT[dtype] if dtype else (0, 0)
    sums = torch.empty(blocks, 2, dtype=torch.int64, device=bits.device)
    kept = sums if worst is None else worst
    with elsewhere(bits.device):  # Triton starts kernels on the current device
        _kernel[(-(-blocks // rows),)](
            *(bits, weights(0, bits.device), sums, kept, place, bits.numel()),
            block=BLOCK,
            rows=rows,
            part=part,
            exponent=exponent,
            halves=halves,
            num_warps=warps,
        )
    return sums


def elsewhere(device: torch.device) -> AbstractContextManager[None]:
    """Makes a device the current one, if it is not."""
    there = device.type != "cuda" or device.index == torch.cuda.current_device()
    return nullcontext() if there else torch.cuda.device(device)
