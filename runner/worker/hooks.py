"""Follow the calls of a model's modules by hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn


def uncompiled(model: nn.Module) -> nn.Module:
    """The model itself, where torch.compile stands around it."""
    inner: nn.Module = getattr(model, "_orig_mod", model)
    return inner


@contextmanager
def hooked(
    model: nn.Module,
    enter: Callable[[str, nn.Module, Any, Any], None],
    leave: Callable[[nn.Module, Any, Any, Any], None],
) -> Iterator[None]:
    """Call `enter` (path, module, args, kwargs) before and `leave` (module, args, kwargs, output) after each call."""
    handles = []
    for path, module in followed(model):
        handles.append(module.register_forward_pre_hook(partial(enter, path), with_kwargs=True))
        handles.append(module.register_forward_hook(leave, with_kwargs=True, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def followed(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules to follow, by path; of a compiled model only that as a whole.

    TorchScript knows no hooks, and an encoder layer goes another way with them.
    """
    if uncompiled(model) is not model:
        yield "", model
        return
    closed: tuple[str, ...] = ()
    for path, module in model.named_modules():
        if path.startswith(closed):
            continue
        fast = isinstance(module, nn.TransformerEncoderLayer) and not module.training
        if fast or isinstance(module, torch.jit.ScriptModule):
            closed += (f"{path}." if path else "",)
        else:
            yield path, module
