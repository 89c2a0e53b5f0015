"""What the kernel that looks at a tensor in one pass finds, in Triton's interpreter; printed as JSON.

The interpreter has to be asked for before Triton is imported: hence a process of its own.
"""

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import Tensor

from runner.worker import deferred, one_pass
from runner.worker.deferred import Deferred
from runner.worker.digest import BLOCK, block_sums, joined, words

one_pass._MANY_FROM, one_pass._SOME_FROM = 5, 3
deferred.in_one_pass = lambda device: one_pass  # type: ignore[assignment]


def sums() -> dict[str, bool]:
    """Whether the sums are those of the definition, by the number of words."""
    found = {}
    for size in (1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7, 9 * BLOCK):
        bits = torch.arange(size, dtype=torch.int32) * -1640531527
        found[str(size)] = torch.equal(one_pass.block_sums(bits), block_sums([bits]))
    return found


def looked_at(numbers: list[str], dtype: torch.dtype, place: int) -> list[object]:
    """Whether the digest is right, and what is said of a tensor of the largest numbers with these from a place on."""
    tensor = torch.full((5 * BLOCK + 3,), torch.finfo(dtype).max, dtype=dtype)
    tensor[::2] = torch.finfo(dtype).min
    tensor[place : place + len(numbers)] = torch.tensor([float(number) for number in numbers], dtype=dtype)
    asked = Deferred()
    places = [asked.look(tensor, finite=True), asked.look(tensor, finite=False)]
    digests, finite = asked.read()
    return [places == [(0, 0), (1, None)] and digests == [plain(tensor)] * 2, *finite]


def plain(tensor: Tensor) -> str:
    """The digest that PyTorch's own operations give."""
    (bits,) = words([tensor])
    return joined([block_sums([bits])])[0].numpy().tobytes().hex()


said = {
    " ".join([*numbers, str(dtype), str(place)]): looked_at(numbers, dtype, place)
    for numbers in ([], ["inf"], ["-inf"], ["nan"], ["inf", "nan"])
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    for place in (0, 1, BLOCK, 5 * BLOCK + 1)
}
print(json.dumps({"sums": sums(), "said": said}))
