"""Keep inputs and outputs of a few operations of a trace, and look at each of them while it is at hand.

Called from within a dispatch mode, below autograd and autocast: what is done here is traced by nobody.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from runner.captured import CapturedOperation, Output, outputs_file, tensors_file, write_operations, write_outputs
from runner.worker import flags
from runner.worker.call import called, copied, is_plain, raw, results_of, tensors, written
from runner.worker.digest import digest
from runner.worker.float64 import float64_error
from runner.worker.repeat import same_bits
from runner.worker.signature import signature

LIMIT_BYTES = 1 << 30
REPEATS = 10


@dataclass(frozen=True, eq=False)
class _Before:
    """The arguments as they were before the call, and the state of the generator if the operation may draw from it."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    generator: Tensor | None


@dataclass(frozen=True, eq=False)
class _Kept:
    seen: CapturedOperation
    call: _Before | None
    outputs: list[Output]
    again: list[Output]


class Capture:
    """Keeps the operations with these indices; `before` and `keep` are to be called around each of them.

    What takes more than `limit_bytes`, inputs and outputs each by themselves, is looked at and not saved.
    """

    def __init__(self, indices: Iterable[int], limit_bytes: int = LIMIT_BYTES):
        self.indices = frozenset(indices)
        self._limit_bytes = limit_bytes
        self._before: dict[int, _Before] = {}
        self._kept: list[_Kept] = []

    def before(self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy the inputs: the operation may change them."""
        odd = next((leaf for leaf in tree_leaves((args, kwargs)) if not is_plain(leaf)), None)
        if odd is not None:
            form = f" of {odd.layout}" if isinstance(odd, Tensor) else ""
            self._nothing(index, func, _device((args, kwargs)), f"an input is a {type(odd).__name__}{form}")
            return
        draws = torch.Tag.nondeterministic_seeded in func.tags
        taken, named = copied((args, kwargs))
        self._before[index] = _Before(taken, named, _generator_state(args, kwargs) if draws else None)

    def keep(self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        """Copy the outputs, do the operation again, and in float64."""
        if index not in self._before:
            return
        before, results = self._before.pop(index), results_of(func, args, kwargs, outputs)
        device = _device((args, kwargs, results))
        if before.generator is not None and not torch.equal(before.generator, _generator_state(args, kwargs)):
            self._nothing(index, func, device, "it draws random numbers")
            return
        if not all(map(is_plain, results)):
            self._nothing(index, func, device, "an output is no plain tensor")
            return
        repeated = not written(func, args, kwargs)
        again = _differing_repeat(func, before, results) if repeated else []
        error = float64_error(func, before.args, before.kwargs, results)
        no_error = [f"not done in float64: {error}"] if isinstance(error, str) else []
        too_large = self._too_large(before, results)
        seen = _seen(
            index,
            func,
            device,
            inputs=_inputs_digest(before),
            repeated_equal=not again if repeated else None,
            relative_error=None if isinstance(error, str) else error[0],
            ulp_error=None if isinstance(error, str) else error[1],
            tensors="inputs" not in too_large,
            outputs="outputs" not in too_large,
            scratch=list(signature(func).scratch),
            left_out=[*too_large.values(), *no_error],
        )
        saved = [list(map(_output, given)) if seen.outputs else [] for given in (results, again)]
        self._kept.append(_Kept(seen, before if seen.tensors else None, *saved))

    def _nothing(self, index: int, func: Any, device: str, reason: str) -> None:
        """Note that this operation could not be kept."""
        self._kept.append(_Kept(_seen(index, func, device, left_out=[f"nothing saved: {reason}"]), None, [], []))

    def _too_large(self, before: _Before, results: list[Tensor]) -> dict[str, str]:
        """Which of inputs and outputs are too large to be saved, in words."""
        sizes = {
            "inputs": sum(tensor.untyped_storage().nbytes() for tensor in tensors((before.args, before.kwargs))),
            "outputs": sum(tensor.nbytes for tensor in results),
        }
        limit = self._limit_bytes
        return {
            name: f"{name} not saved: they take {size / 1e9:.3g} GB, more than {limit / 1e9:.3g} GB"
            for name, size in sizes.items()
            if size > limit
        }

    def write(self, folder: Path) -> None:
        """Leave the tensors, the outputs and what is known of them in this folder."""
        for kept in self._kept:
            if kept.call:
                call = {"name": kept.seen.name, "args": kept.call.args, "kwargs": kept.call.kwargs}
                torch.save(tree_map(_storable, call), tensors_file(folder, kept.seen.index))
            if kept.seen.outputs:
                write_outputs(outputs_file(folder, kept.seen.index), kept.outputs, kept.again)
        write_operations(folder, sorted((kept.seen for kept in self._kept), key=lambda seen: seen.index))


def _seen(index: int, func: Any, device: str, **found: Any) -> CapturedOperation:
    threads, switches = torch.get_num_threads(), flags.read()
    return CapturedOperation(index, str(func), device, threads, switches, **found)


def _storable(leaf: Any) -> Any:
    """A memory format cannot be pickled: its name stands for it."""
    return str(leaf) if isinstance(leaf, torch.memory_format) else leaf


def _device(tree: Any) -> str:
    """Where an operation with these tensors works: single numbers may lie on the CPU."""
    return next((tensor.device.type for tensor in tensors(tree) if tensor.device.type != "cpu"), "cpu")


def _generator_state(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The state of the generator that an operation with these arguments would draw from."""
    leaves = tree_leaves((args, kwargs))
    given = next((leaf for leaf in leaves if isinstance(leaf, torch.Generator)), None)
    if given is not None:
        return given.get_state()
    device = next((tensor.device for tensor in tensors(leaves) if tensor.is_cuda), None)
    return torch.get_rng_state() if device is None else torch.cuda.get_rng_state(device)


def _differing_repeat(func: Any, before: _Before, results: list[Tensor]) -> list[Tensor]:
    """The results of the first of some repeats that gives other bits, nothing if none does."""
    for _ in range(REPEATS):
        again = called(func, *copied((before.args, before.kwargs)))
        if not all(map(same_bits, results, again)):
            return again
    return []


def _output(tensor: Tensor) -> Output:
    bits = raw(tensor).to("cpu", copy=True).numpy()  # a copy on a CPU too: training goes on in the tensor's memory
    real = tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype
    return Output(bits.view(np.dtype(f"u{bits.itemsize}")), str(real).removeprefix("torch."))


def _inputs_digest(before: _Before) -> str:
    """Covers the tensors, and every other argument as text."""
    tree = before.args, before.kwargs
    rest = repr(tree_map_only(Tensor, lambda _: "tensor", tree))
    return hashlib.sha256(f"{digest(tensors(tree))} {rest}".encode()).hexdigest()[:32]
