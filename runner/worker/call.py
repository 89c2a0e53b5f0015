"""One call of an operation: its tensors, copies of its arguments, what it changes, and its results.

`func` is an overload as a dispatch mode gets it (torch.ops.aten.relu.default), `args` and `kwargs` are its arguments.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from runner.worker.signature import signature

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NO_TENSOR = (
    *(bool, int, float, complex, str),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator),
)


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def is_plain(leaf: Any) -> bool:
    """Whether an argument can be copied and saved: a tensor of strided numbers in memory, a number, a name, a type."""
    if not isinstance(leaf, Tensor):
        return leaf is None or isinstance(leaf, _NO_TENSOR)
    dense = leaf.layout is torch.strided and not leaf.is_quantized and not leaf.is_meta
    return dense and type(leaf) in (Tensor, torch.nn.Parameter)


def is_floating(tensor: Tensor) -> bool:
    """Whether its elements are floating-point numbers, or pairs of them."""
    return tensor.is_floating_point() or tensor.is_complex()


def copied(tree: Any) -> Any:
    """The arguments with copies of the plain tensors among them, as another process could have got them.

    A copy has the values, strides and alignment of its tensor, and a storage of its own that is no larger than needed.
    Devices lose their number, since another machine may have one device only, and there is no generator.
    """
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


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors among the arguments that the operation changes by its schema."""
    declared = func._schema.arguments
    changed = {one.name for one in declared if one.alias_info is not None and one.alias_info.is_write}
    return tensors([value for name, value in by_name(func, args, kwargs).items() if name in changed])


def by_name(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names that the schema gives them."""
    return {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | kwargs


def results_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> list[Tensor]:
    """The tensors that an operation gives: what it returned but scratch, then what it changed and did not return."""
    scratch = signature(func).scratch
    returned = tensors([one for place, one in enumerate(outputs) if place not in scratch] if scratch else outputs)
    there = {id(tensor) for tensor in returned}
    return returned + [tensor for tensor in written(func, args, kwargs) if id(tensor) not in there]


def called(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Do the operation; its results. The gradient mode stays as it is: there are operations that look at it."""
    return results_of(func, args, kwargs, func(*args, **kwargs))


def raw(tensor: Tensor) -> Tensor:
    """The bits of the elements as integers of their size, in logical order; complex ones as two numbers."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return real.contiguous().view(_INTEGERS[real.element_size()])
