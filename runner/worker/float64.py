"""How far an operation's results lie from those of the same operation in float64 on the same inputs."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from runner.worker.call import by_name, called, copied, is_floating, tensors

# What an operation's own forward pass left for it: bits that mean something to a kernel of the same type alone.
_RAW = ("reserve", "reserveSpace", "reserve_space", "fn_reserve", "workspace")


def float64_error(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: list[Tensor]
) -> tuple[float | None, float] | str:
    """The error of these results against float64, or in words why it is not known.

    The first figure is ||out - out64|| / ||out64|| over all outputs together, None where all of out64 are 0: an output
    that should be 0, as the gradient of a bias before a batch norm, would have an error as large as itself.
    The second is the largest error of an element in units in the last place of the output's type. Both are over finite
    elements. The arguments are copied first and not changed.
    """
    narrow = [tensor for tensor in results if is_floating(tensor)]
    if not narrow:
        return "it gives no floating-point numbers"
    if all(tensor.dtype in (torch.float64, torch.complex128) for tensor in narrow):
        return "it works in float64 itself"
    given = by_name(func, args, kwargs)
    unreadable = [name for name in _RAW if tensors(given.get(name))]
    if unreadable:
        return f"its {unreadable[0]} holds what a kernel of the other type left there"
    try:
        exact = called(func, *tree_map(_widened, copied((args, kwargs))))
    except Exception as error:  # a kernel that is not there, memory that does not suffice: each has its own type
        return (str(error).strip() or type(error).__name__).splitlines()[0]
    pairs = [(_real(old), _real(new)) for old, new in zip(results, exact, strict=True) if is_floating(old)]
    if any(new.dtype is not torch.float64 or new.shape != old.shape for old, new in pairs):
        return "its result is then no float64 of the same shape"
    errors = [_error(old, new) for old, new in pairs if old.dtype is not torch.float64]
    off, norm = (math.hypot(*sizes) for sizes in list(zip(*errors, strict=True))[:2])
    return off / norm if norm else None, max(ulp for *_, ulp in errors)


def _widened(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.to(_wide(leaf.dtype))
    return _wide(leaf) if isinstance(leaf, torch.dtype) else leaf


def _wide(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _error(seen: Tensor, exact: Tensor) -> tuple[float, float, float]:
    """||seen - exact||, ||exact|| and the largest error in units in the last place."""
    finite = torch.isfinite(seen) & torch.isfinite(exact)
    if not finite.any():
        return 0.0, 0.0, 0.0
    exact = exact[finite]
    off = (seen[finite].double() - exact).abs()
    kind = torch.finfo(seen.dtype)
    size = exact.abs().clamp(min=kind.smallest_normal)
    # size / mantissa is the power of two above: half of it times eps is one unit in the last place.
    unit = size / torch.frexp(size).mantissa * (kind.eps / 2)
    return float(torch.linalg.vector_norm(off)), float(torch.linalg.vector_norm(exact)), float((off / unit).max())
