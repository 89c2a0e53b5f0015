"""Nested values: lists, tuples and dicts of tensors, as the batches and outputs of a user's own code may be."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves, tree_map


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in a nested value, in order; of packed sequences what they hold."""
    leaves = [leaf.data if isinstance(leaf, PackedSequence) else leaf for leaf in tree_leaves(tree, _is_packed)]
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def moved(tree: Any, device: torch.device) -> Any:
    """The same value with all tensors on the device, queued where they are pinned; what else there is stays."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, PackedSequence):
            return leaf.to(device, non_blocking=True)  # type: ignore[arg-type]  # it is declared to take a dtype alone
        return leaf.to(device, non_blocking=True) if isinstance(leaf, Tensor) else leaf

    return move(tree) if isinstance(tree, Tensor) else tree_map(move, tree, is_leaf=_is_packed)


def form(tree: Any) -> tuple[Any, ...]:
    """What tells inputs of one shape from others: the shape of a tensor, else those of all tensors in it."""
    return tuple(tree.shape) if isinstance(tree, Tensor) else tuple(tuple(tensor.shape) for tensor in tensors(tree))


def described(value: Any) -> str:
    """A nested value in words, for messages: "(float32 (3, 8, 8), int)"."""
    if isinstance(value, dict):
        return f"{{{_listed([f'{key}: {described(part)}' for key, part in list(value.items())[:4]], len(value))}}}"
    if isinstance(value, tuple | list):
        inside = _listed([described(part) for part in value[:3]], len(value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return type(value).__name__


def _listed(parts: list[str], count: int) -> str:
    return f"{', '.join(parts)}{', ...' if count > len(parts) else ''}"


def _is_packed(value: Any) -> bool:
    return isinstance(value, PackedSequence)  # a tuple of which the parts must not be moved one by one
