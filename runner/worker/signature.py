"""What an operation's schema says of its calls: which arguments they write, whether they draw or can be repeated."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from runner.operation import Kind

_UNINITIALISED = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized",
    "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip
# Views that deny it: their schema says that they make a new tensor.
_HANDING_ON = {"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"}
# These read nothing of what they write, nor do out= variants and random numbers in place.
_OVERWRITING = {"copy_", "fill_", "zero_", "_foreach_copy_", "_foreach_zero_"}
# Changed by the kernel though the schema does not say so (ATen/native: cudnn/BatchNorm.cpp, Normalization.cpp).
_SILENTLY_WRITTEN = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), ("running_mean", "running_var")
)
# Outputs by their place that are a kernel's scratch space, or left uninitialised where they are not needed.
_SCRATCH = {
    "_cudnn_rnn": (3,),
    "miopen_rnn": (3,),
    "mkldnn_rnn_layer": (3,),
    "cudnn_batch_norm": (3,),
    "_batch_norm_with_update": (3,),
    "_ctc_loss": (1,),
    "_cudnn_ctc_loss": (1,),
    "_embedding_bag": (1, 2, 3),
    "_cudnn_init_dropout_state": (0,),  # of the seed, which is among its numbers, in memory not all of it written
    "_scaled_dot_product_flash_attention": (6, 7, 8),
    "_scaled_dot_product_cudnn_attention": (6, 7, 8),
    "_scaled_dot_product_fused_attention_overrideable": (6, 7, 8),
    "_scaled_dot_product_efficient_attention": (1, 2, 3),
    "_flash_attention_forward": (2, 3, 4),
    "_efficient_attention_forward": (1, 2, 3),
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an operation: whether a tensor given for it is changed, and whether it is overwritten unread."""

    name: str
    writes: bool = False
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """An operation as its schema has it.

    `scratch` are the places of outputs whose bits mean nothing. `repeatable`: it does not say that it changes its
    arguments, so it can be done again on copies of them (unless it has drawn random numbers). `composite`: it is made
    of other operations.
    """

    name: str
    kind: Kind
    arguments: tuple[Argument, ...] = ()
    scratch: tuple[int, ...] = ()
    repeatable: bool = False
    composite: bool = False


@cache
def signature(func: Any) -> Signature:
    """The signature of an ATen operation; one that has no schema counts as computed from what it is given."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Signature(str(func), "computed")
    base, random = schema.name.split("::")[-1], torch.Tag.nondeterministic_seeded in func.tags
    arguments = tuple(_argument(one, base, random) for one in schema.arguments)
    aliases = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
    hands_on = base in _HANDING_ON or (aliases and not any(one.writes for one in arguments))
    kind: Kind = "computed"
    if base in _UNINITIALISED:
        kind = "uninitialised"
    elif random:
        kind = "random"
    elif hands_on or torch.Tag.inplace_view in func.tags:
        kind = "view"
    repeatable = kind in ("computed", "random") and not any(_marked(one) for one in schema.arguments)
    return Signature(str(func), kind, arguments, _SCRATCH.get(base, ()), repeatable, _is_composite(func))


def _is_composite(func: Any) -> bool:
    has_kernel = partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has_kernel("CompositeImplicitAutograd") and not (has_kernel("CPU") or has_kernel("CUDA"))


def _marked(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _argument(argument: Any, base: str, random: bool) -> Argument:
    marked = _marked(argument)
    silently = argument.name in _SILENTLY_WRITTEN.get(base, ())
    overwrites = marked and (argument.is_out or random or base in _OVERWRITING)
    return Argument(argument.name, marked or silently, overwrites)
