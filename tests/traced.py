"""A few training steps under the probe of operations, for the tests that look at their traces."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from runner.operation import Operation
from runner.trial import Trial
from runner.worker.operations import Keeper, OperationProbe

Loss = Callable[[Any], Tensor]


def trial_of(steps: int = 1, repeat: bool = False) -> Trial:
    """A trial with the probe of operations, and nothing else that matters."""
    probe = {"name": "ops", "steps": steps, "repeat": repeat}
    return Trial("cell", {"probe": probe}, 0, 0, "cpu", {}, exclusive=False, claim="")


def traced(
    model: nn.Module,
    loss: Loss | None = None,
    steps: int = 1,
    repeat: bool = False,
    keeper: Keeper | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[Operation]:
    """The operations of `steps` steps: the loss of the model, its gradients and, with an optimizer, the update."""
    probe = OperationProbe(trial_of(steps, repeat), model, keeper)
    for step in range(1, steps + 1):
        with probe.step(step):
            value = loss(model) if loss else model(torch.ones(2, 4)).sum()
            value.backward()
            with probe.optimizing() if optimizer else nullcontext():
                if optimizer:
                    optimizer.step()
    return list(probe.operations)


def seen(do: Callable[[], Any], repeat: bool = False) -> list[Operation]:
    """The operations of what this does."""
    probe = OperationProbe(trial_of(repeat=repeat), nn.Identity())
    with probe.step(1):
        do()
    return list(probe.operations)


def named(operations: list[Operation], name: str) -> Operation:
    """The only operation of this name, as "relu" for aten.relu.default."""
    (found,) = [one for one in operations if one.name.split(".")[1] == name]
    return found
