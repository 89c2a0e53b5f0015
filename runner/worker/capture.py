"""Keep inputs and outputs of a few operations of a trace, and look at each of them while it is at hand.

Called from within a dispatch mode, below autograd and autocast: what is done here is traced by nobody, and what only
looks is not seen by other modes either.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from runner.captured import CapturedOperation, checksum, write_operations, write_outputs
from runner.layout import tensors_file
from runner.size import Output, Size
from runner.worker import flags
from runner.worker.bits import has_bits, output_of
from runner.worker.call import Call, called, can_be_copied, copied, tensors
from runner.worker.digest import digest
from runner.worker.float64 import float64_error
from runner.worker.generator import generator_for, state_digest
from runner.worker.repeat import compared
from runner.worker.signature import signature

LIMIT_BYTES = 1 << 30  # of inputs and outputs each: what takes more is looked at and not saved
REPEATS = 10


@dataclass(frozen=True, eq=False)
class _Before:
    """The arguments as they were before the call, and the state of the generator if the operation may draw from it.

    `inputs` is a digest of them.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: str
    generator: str | None


@dataclass(frozen=True, eq=False)
class _Kept:
    seen: CapturedOperation
    call: _Before | None = None
    outputs: tuple[Output, ...] = ()


class Capture:
    """Keeps the operations with these indices; `before` and `keep` are to be called around each of them."""

    def __init__(self, indices: Iterable[int]):
        self.indices = frozenset(indices)
        self._before: dict[int, _Before] = {}
        self._kept: list[_Kept] = []

    def before(
        self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], unread: Collection[int] = ()
    ) -> None:
        """Copy the inputs: the operation may change them. `unread` are the ids of those whose bits mean nothing."""
        odd = next((leaf for leaf in tree_leaves((args, kwargs)) if not can_be_copied(leaf)), None)
        if odd is not None:
            self._left_out(index, func, f"an input is a {_described(odd)}")
            return
        draws = signature(func).kind == "random"
        state = state_digest(generator_for(args, kwargs)) if draws else None
        copied_args, copied_kwargs = copied((args, kwargs))
        read = [id(tensor) not in unread for tensor in tensors((args, kwargs))]
        inputs = _inputs_digest((copied_args, copied_kwargs), read)
        self._before[index] = _Before(copied_args, copied_kwargs, inputs, state)

    def keep(self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
        """Copy the outputs, do the operation again, and in float64."""
        if index not in self._before:
            return
        before, call = self._before.pop(index), Call.of(signature(func), args, kwargs)
        results = call.results(returned)
        if before.generator and before.generator != state_digest(generator_for(args, kwargs)):
            self._left_out(index, func, "it draws random numbers")
        elif not all(map(has_bits, results)):
            self._left_out(index, func, "an output is no plain tensor")
        else:
            self._kept.append(_kept(index, func, before, results))

    def _left_out(self, index: int, func: Any, reason: str) -> None:
        """Note that this operation could not be kept."""
        self._kept.append(_Kept(_seen(index, func, left_out=[f"nothing saved: {reason}"])))

    def write(self, folder: Path) -> None:
        """Leave the tensors, the outputs and what is known of them in this folder."""
        written = [_written(folder, kept) for kept in self._kept]
        write_operations(folder, sorted(written, key=lambda seen: seen.index))


def _written(folder: Path, kept: _Kept) -> CapturedOperation:
    """Write an operation's tensors; what is known of it, with what tells whether they are still as they were."""
    if kept.seen.outputs:
        write_outputs(folder, kept.seen.index, kept.outputs)
    if not kept.call:
        return kept.seen
    path, call = tensors_file(folder, kept.seen.index), {"args": kept.call.args, "kwargs": kept.call.kwargs}
    torch.save(tree_map(_storable, {"name": kept.seen.name} | call), path)
    size_bytes, crc32 = checksum(path)
    return replace(kept.seen, tensors_bytes=size_bytes, tensors_crc32=crc32)


def _described(leaf: Any) -> str:
    """What cannot be copied, in words."""
    if not isinstance(leaf, Tensor):
        return type(leaf).__name__
    form = "nested" if leaf.is_nested else f"{leaf.layout}, {leaf.dtype}, {leaf.device.type}"
    return f"{type(leaf).__name__} ({form})"


def _kept(index: int, func: Any, before: _Before, results: list[Tensor]) -> _Kept:
    repeated = _repeated(func, before, results) if signature(func).repeatable else None
    error, no_error = float64_error(func, before.args, before.kwargs, results)
    too_large = _too_large(before, results)
    with _DisableTorchDispatch():
        seen = _seen(
            index,
            func,
            inputs=before.inputs,
            repeated=repeated,
            relative_error=error,
            tensors="inputs" not in too_large,
            outputs="outputs" not in too_large,
            scratch=list(signature(func).scratch),
            left_out=[*too_large.values(), *([f"not done in float64: {no_error}"] if no_error else [])],
        )
        return _Kept(seen, before if seen.tensors else None, tuple(map(output_of, results)) if seen.outputs else ())


def _repeated(func: Any, before: _Before, results: list[Tensor]) -> Size:
    """How far the first of some repeats lies off that gives other bits, or else the last."""
    for _ in range(REPEATS):
        size = compared(results, called(func, *copied((before.args, before.kwargs))))
        if size.differing:
            break
    return size


def _too_large(before: _Before, results: list[Tensor]) -> dict[str, str]:
    """Which of inputs and outputs are too large to be saved, in words."""
    sizes = {
        "inputs": sum(tensor.untyped_storage().nbytes() for tensor in tensors((before.args, before.kwargs))),
        "outputs": sum(tensor.nbytes for tensor in results),
    }
    return {
        name: f"{name} not saved: they take {_size_words(size)}, more than {_size_words(LIMIT_BYTES)}"
        for name, size in sizes.items()
        if size > LIMIT_BYTES
    }


def _size_words(size_bytes: int) -> str:
    """A size in the largest unit of which it holds one: "6.72 kB"."""
    power = next((power for power in (9, 6, 3) if size_bytes >= 10**power), 0)
    return f"{size_bytes / 10**power:.3g} { {9: 'GB', 6: 'MB', 3: 'kB', 0: 'bytes'}[power] }"


def _seen(index: int, func: Any, **found: Any) -> CapturedOperation:
    return CapturedOperation(index, str(func), torch.get_num_threads(), flags.read(), **found)


def _storable(leaf: Any) -> Any:
    """A memory format cannot be pickled: its name stands for it."""
    return str(leaf) if isinstance(leaf, torch.memory_format) else leaf


def _inputs_digest(tree: Any, read: Sequence[bool]) -> str:
    """Covers those tensors that are read, and every other argument as text."""
    with _DisableTorchDispatch():
        bits = digest(compress(tensors(tree), read))
    rest = repr(tree_map_only(Tensor, lambda _: "tensor", tree))
    return hashlib.sha256(f"{bits} {rest}".encode()).hexdigest()[:32]
