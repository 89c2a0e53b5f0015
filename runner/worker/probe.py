"""What looks into the steps of a trial: nothing, its modules, its operations or its kernels."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from runner.trial import Trial


class Probe(Protocol):
    """Looks into the training loop from three places."""

    def step(self, number: int) -> AbstractContextManager[None]:
        """Around step `number`, counted from 1."""

    def optimizing(self) -> AbstractContextManager[None]:
        """Within a step, around the update of the weights, when the gradients are there."""

    def write(self, folder: Path) -> None:
        """Leave what was seen in the trial's folder, also where a step has failed."""


class NoProbe:
    """Looks at nothing."""

    def step(self, number: int) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def optimizing(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def write(self, folder: Path) -> None:
        """Write nothing."""


NO_PROBE = NoProbe()


def probe_of(trial: Trial, model: nn.Module, device: torch.device) -> Probe:
    """The probe that the trial's settings ask for; `model` stands on its device, compiled where it is to be."""
    name = trial.config.get("probe", {}).get("name", "none")
    if name == "ops":
        from runner.worker.operations import OperationProbe

        return OperationProbe(trial, model)
    if name == "modules":
        from runner.worker.modules import ModuleProbe

        return ModuleProbe(trial, model, device)
    if name == "kernels":
        from runner.worker.kernels import KernelProbe

        return KernelProbe(trial, model, device)
    return NO_PROBE


def last_call_probe(trial: Trial, model: nn.Module, device: torch.device) -> Probe:
    """With phase=calls: the kernels of the call after all others, where calls.kernels asks for them."""
    calls = trial.config["calls"]
    if not calls["kernels"]:
        return NO_PROBE
    from runner.worker.kernels import KernelProbe

    return KernelProbe(trial, model, device, calls["times"] + 1)
