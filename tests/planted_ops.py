"""Noise in one operation of a training, as a PyTorch with a fault in it would make it."""

import os
from collections.abc import Collection, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

How = Literal["process", "repeat"]
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# The low bits of a floating-point number that noise may turn, by its size in bytes: it stays finite, and small.
LOW_BITS = {2: 0x3F, 4: 0xFFFFF, 8: 0xFFFFFFFFFF}


class Noise(TorchDispatchMode):
    """Turns bits in what one operation of one training step gives.

    name: the ATen operation ("aten.convolution.default"). calls: which of its calls within the step, from 0; one that
    the probe repeats is two. how: "process" turns the bits that `identity` says (0: none), "repeat" others at every
    call; of a number that is no floating-point one the lowest bit alone, where `identity` is odd, or in the first call.
    It has to lie below the probe, so that the probe sees what it does.
    """

    def __init__(self, name: str, calls: Collection[int], how: How, step: int = 1, identity: int = 0):
        super().__init__()
        self.name, self.calls, self.how, self.step, self.identity = name, frozenset(calls), how, step, identity
        self.steps, self.seen = 0, 0

    def follow(self, model: nn.Module) -> "Noise":
        """Count the calls from the start of each training step of this model."""
        model.register_forward_pre_hook(self._begin)
        return self

    def _begin(self, model: nn.Module, inputs: Any) -> None:
        if model.training:
            self.steps, self.seen = self.steps + 1, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do the operation, then turn bits of its result where it is the planted one."""
        outputs = func(*args, **(kwargs or {}))
        if self.steps == self.step and str(func) == self.name:
            if self.seen in self.calls:
                turn_bits(changed_by(func, args, outputs), self._bits())
            self.seen += 1
        return outputs

    def _bits(self) -> int:
        first = self.seen == min(self.calls)
        return self.identity if self.how == "process" else int.from_bytes(os.urandom(8), "big") & ~1 | first


def changed_by(func: Any, args: Any, outputs: Any) -> Tensor:
    """The first tensor with elements that an operation gives, or else that it writes to."""
    written = (value for value, argument in zip(args, func._schema.arguments, strict=False) if _is_written(argument))
    return next(filter(_has_elements, [*tree_leaves(outputs), *tree_leaves(list(written))]))


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _has_elements(value: object) -> bool:
    return isinstance(value, Tensor) and value.numel() > 0


def turn_bits(tensor: Tensor, bits: int) -> None:
    """Turn low bits of the first element in place."""
    element = tensor.detach()[(0,) * tensor.dim()]
    turned = bits & LOW_BITS[element.itemsize] if element.is_floating_point() else bits & 1
    element.view(WORDS[element.itemsize]).bitwise_xor_(turned)


class NoisyOperation(nn.Module):
    """A small network of 8x8 images on a PyTorch of which one operation is noisy, from here to the process's end."""

    def __init__(self, name: str, calls: Iterable[int], how: How, step: int = 1):
        super().__init__()
        norm, drop = nn.BatchNorm2d(4), nn.Dropout(0.5)
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.ReLU(), drop, nn.Flatten(), nn.Linear(144, 10))
        Noise(name, list(calls), how, step, identity=os.getpid()).follow(self).__enter__()

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


def noisy_linear() -> nn.Module:
    """The one linear layer gives other bits in each process, the same when it is repeated: it is called twice."""
    return NoisyOperation("aten.addmm.default", (0, 1), "process")


def noisy_gradient() -> nn.Module:
    """The convolution's gradient is noisy at every call, in step 2."""
    return NoisyOperation("aten.convolution_backward.default", (0, 1), "repeat", step=2)
