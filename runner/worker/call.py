"""One call of an operation: its arguments, copies of them, what it changes, and its results.

An operation is an overload as a dispatch mode gets it (torch.ops.aten.relu.default).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch
from torch.utils._pytree import tree_leaves, tree_map

from runner.worker.bits import has_bits
from runner.worker.signature import Argument, Signature, signature

_NUMBERS_AND_WORDS = bool, int, float, complex, str
_TYPES = torch.dtype, torch.layout, torch.memory_format


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def can_be_copied(leaf: Any) -> bool:
    """Whether an argument can be copied and saved: a tensor of plain numbers in memory, a number, a word, a type."""
    if isinstance(leaf, Tensor):
        return has_bits(leaf)
    return leaf is None or isinstance(leaf, (*_NUMBERS_AND_WORDS, *_TYPES, torch.device, torch.Generator))


def as_text(value: Any, shown: Callable[[Sequence[Tensor]], str]) -> str:
    """One text for one value, the same in every process and on every card; `shown` gives what stands for tensors."""
    if isinstance(value, Tensor):
        return shown([value])
    if isinstance(value, (list, tuple)):
        if len(value) > 1 and all(isinstance(one, Tensor) for one in value):
            return f"[{shown(value)}]"
        return f"[{', '.join([as_text(one, shown) for one in value])}]"
    if isinstance(value, dict):
        return f"{{{', '.join([f'{key}: {as_text(one, shown)}' for key, one in value.items()])}}}"
    if isinstance(value, torch.device):
        return value.type  # trials may run on different cards
    if value is None or isinstance(value, _NUMBERS_AND_WORDS):
        return repr(value)
    return str(value) if isinstance(value, _TYPES) else type(value).__name__  # what else there is would show an address


@dataclass(slots=True)
class Call:
    """A call by its arguments: all tensors in order, the places of those it writes, everything else as text."""

    form: Signature
    tensors: list[Tensor] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    overwrites: list[int] = field(default_factory=list)
    scalars: str = ""

    @classmethod
    def of(cls, form: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> "Call":
        """The call with these arguments."""
        call, texts = cls(form), []
        for argument, value in bound(form, args, kwargs):
            first = len(call.tensors)
            texts.append(f"{argument.name}={as_text(value, call._numbered)}")
            if argument.writes:
                call.writes += range(first, len(call.tensors))
            if argument.overwrites:
                call.overwrites += range(first, len(call.tensors))
        call.scalars = ", ".join(texts)
        return call

    def _numbered(self, found: Sequence[Tensor]) -> str:
        """Take down tensors: in the text they stand by their places."""
        first = len(self.tensors)
        self.tensors += found
        return f"#{first}" if len(found) == 1 else f"#{first}..#{len(self.tensors) - 1}"

    def outputs(self, returned: Any) -> list[Tensor]:
        """What the operation returned, then what it wrote without returning it."""
        found = tensors(returned)
        there = {id(tensor) for tensor in found}
        return found + [self.tensors[place] for place in self.writes if id(self.tensors[place]) not in there]

    def scratch(self, returned: Any) -> set[int]:
        """The ids of those outputs whose bits mean nothing."""
        several = returned if isinstance(returned, list | tuple) else (returned,)
        return {id(several[place]) for place in self.form.scratch if place < len(several)}

    def results(self, returned: Any) -> list[Tensor]:
        """The outputs whose bits mean something."""
        scratch = self.scratch(returned)
        return [tensor for tensor in self.outputs(returned) if id(tensor) not in scratch]


def bound(form: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[Argument, Any]]:
    """Each argument with its value, those given by name in the order of their names."""
    named = {argument.name: argument for argument in form.arguments} if kwargs else {}
    unnamed = (Argument(str(place)) for place in range(len(form.arguments), len(args)))
    yield from zip(chain(form.arguments, unnamed), args, strict=False)
    for name in sorted(kwargs):
        yield named.get(name, Argument(name)), kwargs[name]


def called(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """Do the operation; its results. The gradient mode stays as it is: there are operations that look at it."""
    return Call.of(signature(func), args, kwargs).results(func(*args, **kwargs))


def copied(tree: Any) -> Any:
    """The arguments with copies of the tensors among them, as another process could have got them.

    A copy has the values, strides and alignment of its tensor, and a storage of its own that is no larger than needed.
    Devices lose their number, since another machine may have one device only, and there is no generator.
    """
    with _DisableTorchDispatch():
        return tree_map(_copied, tree)


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device(leaf.type)
    if isinstance(leaf, torch.Generator):
        return None
    if not isinstance(leaf, Tensor):
        return leaf
    tensor = leaf.detach()
    size, stride, offset = tensor.size(), tensor.stride(), tensor.storage_offset()
    shift = offset % (64 // tensor.element_size())  # kernels may differ for addresses that are not round
    reach = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if tensor.numel() else 0
    whole = tensor.as_strided((shift + reach,), (1,), offset - shift).clone()
    return whole.as_strided(size, stride, shift)
