"""A few training steps under the probe of operations, for the tests that look at their traces."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from runner.operation import Operation
from runner.trial import Trial
from runner.worker.operations import OperationProbe

Loss = Callable[[Any], Tensor]


def trial_of(name: str = "ops", steps: int = 1, number: int = 0, capture: Iterable[int] = (), **config: Any) -> Trial:
    """A trial with this probe, and with no settings that are not given here; `repeat` is one of the probe."""
    probe = {"name": name, "steps": steps, "repeat": config.pop("repeat", False)}
    more = {"exclusive": False, "claim": "", "capture": tuple(capture)}
    return Trial("cell", {"probe": probe, **config}, number, 0, "cpu", {}, **more)  # type: ignore[arg-type]


def traced(
    model: nn.Module,
    loss: Loss | None = None,
    steps: int = 1,
    repeat: bool = False,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[Operation]:
    """The operations of `steps` steps: the loss of the model, its gradients and, with an optimizer, the update."""
    probe = OperationProbe(trial_of(steps=steps, repeat=repeat), model)
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
    return list(probed(do, trial_of(repeat=repeat)).operations)


def probed(do: Callable[[], Any], trial: Trial, folder: Path | None = None) -> OperationProbe:
    """The probe after this was done; what it leaves is in the folder, if there is one."""
    probe = OperationProbe(trial, nn.Identity())
    with probe.step(1):
        do()
    if folder:
        folder.mkdir(exist_ok=True)
        probe.write(folder)
    return probe


class Counting(TorchDispatchMode):
    """Stands around other modes and notes what it sees of what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the operation and do it."""
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def named(operations: list[Operation], name: str) -> Operation:
    """The only operation of this name, as "relu" for aten.relu.default."""
    (found,) = [one for one in operations if one.name.split(".")[1] == name]
    return found
