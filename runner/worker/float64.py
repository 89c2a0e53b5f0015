"""How far an operation's results lie from those of the same operation in float64 on the same inputs."""

import math
from typing import Any

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch
from torch.utils._pytree import tree_map

from runner.worker.bits import as_real
from runner.worker.call import bound, called, copied, tensors
from runner.worker.signature import signature

# What an operation's own forward pass left for it: bits that mean something to a kernel of the same type alone.
_RAW = {"reserve", "reserveSpace", "reserve_space", "fn_reserve", "workspace"}


def float64_error(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: list[Tensor]
) -> tuple[float | None, str | None]:
    """The error of these results against float64, None with the reason in words where it is not known.

    It is ||out - out64|| / ||out64|| over the finite elements of all outputs together, None without a reason where all
    of out64 are 0: an output that should be 0, as the gradient of a bias before a batch norm, would have an error as
    large as itself. The arguments are copied first and not changed.
    """
    numbers = [tensor.dtype for tensor in results if _is_floating(tensor)]
    if not numbers:
        return None, "it gives no floating-point numbers"
    if set(numbers) <= {torch.float64, torch.complex128}:
        return None, "it works in float64 itself"
    given = bound(signature(func), args, kwargs)
    unreadable = next((one.name for one, value in given if one.name in _RAW and tensors(value)), None)
    if unreadable:
        return None, f"its {unreadable} holds what a kernel of the other type left there"
    try:
        exact = called(func, *_widened((args, kwargs)))
    except Exception as error:  # a kernel that is not there, memory that does not suffice: each has its own type
        return None, (str(error).strip() or type(error).__name__).splitlines()[0]
    with _DisableTorchDispatch():
        return _error(results, exact)


def _error(results: list[Tensor], exact: list[Tensor]) -> tuple[float | None, str | None]:
    pairs = [(as_real(old), as_real(new)) for old, new in zip(results, exact, strict=True) if _is_floating(old)]
    if any(new.dtype is not torch.float64 or new.shape != old.shape for old, new in pairs):
        return None, "its result is then no float64 of the same shape"
    norms = [_norms(old, new) for old, new in pairs if old.dtype is not torch.float64]
    off, norm = (math.hypot(*sizes) for sizes in zip(*norms, strict=True))
    return off / norm if norm else None, None


def _norms(seen: Tensor, exact: Tensor) -> tuple[float, float]:
    """||seen - exact|| and ||exact|| over what is finite in both."""
    finite = torch.isfinite(seen) & torch.isfinite(exact)
    seen, exact = seen[finite].double(), exact[finite]
    return float(torch.linalg.vector_norm(seen - exact)), float(torch.linalg.vector_norm(exact))


def _is_floating(tensor: Tensor) -> bool:
    """Whether its elements are floating-point numbers, or pairs of them."""
    return tensor.is_floating_point() or tensor.is_complex()


def _widened(tree: Any) -> Any:
    """Copies of the arguments with float64 in place of all narrower numbers."""
    copy = copied(tree)
    with _DisableTorchDispatch():
        return tree_map(_wide, copy)


def _wide(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.to(_wide(leaf.dtype))
    if not isinstance(leaf, torch.dtype):
        return leaf
    if leaf.is_complex:
        return torch.complex128
    return torch.float64 if leaf.is_floating_point else leaf
