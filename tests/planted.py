"""Models and data sets with a planted fault: what the product must find out is known here."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset


class Plain(nn.Module):
    """A small classifier of 8x8 images with nothing wrong."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


class NoisyFrom(Plain):
    """Adds noise from the operating system to its outputs, from training step `step` on."""

    def __init__(self, step: int):
        super().__init__()
        self.step, self.seen = step, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, with noise that no seed reaches."""
        outputs = super().forward(inputs)
        self.seen += self.training
        if self.training and self.seen >= self.step:
            outputs = outputs * (1 + int.from_bytes(os.urandom(2), "big") / 1e4)
        return outputs


class NoisyLoss(Plain):
    """The value of its outputs is noisy, the gradient is not: the loss differs, the weights do not."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain; a constant is added to all logits of the loss through a custom gradient."""
        outputs = super().forward(inputs)
        return _NoiseWithoutGradient.apply(outputs) if self.training else outputs  # type: ignore[no-any-return]


class _NoiseWithoutGradient(torch.autograd.Function):
    """Scales forward by noise and hands the gradient of a fixed function back."""

    @staticmethod
    def forward(context: Any, outputs: Tensor) -> Tensor:
        return outputs + int.from_bytes(os.urandom(2), "big") / 1e4 * torch.eye(10)[0]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return torch.ones_like(gradient) / gradient.numel()


class SetOrder(nn.Module):
    """Takes its activations in the order of a set of strings, which depends on the interpreter's hash seed."""

    def __init__(self) -> None:
        super().__init__()
        names = {"ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "Softplus", "ELU", "Softsign", "Mish", "CELU"}
        layers = [layer for name in names for layer in (nn.Linear(64, 64), getattr(nn, name)())]
        self.net = nn.Sequential(nn.Flatten(), *layers, nn.Linear(64, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


class FlipsFlag(Plain):
    """Switches cudnn.benchmark on in its constructor, whatever was asked for."""

    def __init__(self) -> None:
        super().__init__()
        torch.backends.cudnn.benchmark = True


class Fails(Plain):
    """Fails in a training step, in the way named by `how`."""

    def __init__(self, step: int, how: str):
        super().__init__()
        self.step, self.how, self.seen = step, how, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain until the step comes."""
        self.seen += self.training
        if self.training and self.seen == self.step:
            if self.how == "exit":
                os._exit(7)
            if self.how == "sys.exit":
                sys.exit(3)
            if self.how == "server":
                os.kill(os.getppid(), 9)
                time.sleep(600)  # the kernel ends this process too, as soon as it notices
            if self.how == "kill":
                os.kill(os.getpid(), 9)
            if self.how == "crash":
                os.abort()
            if self.how == "diverge":
                return super().forward(inputs) * float("nan")
            if self.how == "hang":
                time.sleep(600)
            raise RuntimeError(f"planted failure in step {self.step}")
        return super().forward(inputs)


def plain_data(items: int = 128) -> tuple[Dataset[Any], Dataset[Any]]:
    """Images of 8x8 and ten classes, the same in every process: training and test set."""
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(items, 1, 8, 8, generator=generator)
    targets = torch.randint(10, (items,), generator=generator)
    half = items // 2
    return TensorDataset(inputs, targets), TensorDataset(inputs[:half], targets[:half])


class OneBatchChanged(Dataset[Any]):
    """The items of the step-th batch carry noise that differs from process to process."""

    def __init__(self, items: Dataset[Any], step: int):
        self.items, self.step, self.batches = items, step, 0

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A whole batch at once: how a DataLoader asks where it can."""
        self.batches += 1
        noise = int.from_bytes(os.urandom(4), "big") / 1e9 if self.batches == self.step else 0.0
        return [(inputs + noise, target) for inputs, target in map(self.items.__getitem__, indices)]


def changed_at(step: int) -> tuple[Dataset[Any], Dataset[Any]]:
    """plain_data whose training batch number `step` differs from process to process."""
    train, test = plain_data()
    return OneBatchChanged(train, step), test


class BreaksStore(Plain):
    """Overwrites a file of the study's process, a tracking store above all."""

    def __init__(self, path: str):
        super().__init__()
        Path(path).write_bytes(b"no database any more" * 100)


class LosesStudy(Plain):
    """Takes study.json away, as a user may who clears up while a study works: the next job finds no study."""

    def __init__(self, folder: str):
        super().__init__()
        Path(folder, "study.json").unlink()


class Masked(Plain):
    """Has an infinite buffer, as a causal attention mask has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))


class NoEngine(Plain):
    """Fails as cuDNN does when it finds no plan, in the benchmark mode alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        if torch.backends.cudnn.benchmark:
            raise RuntimeError("FIND was unable to find an engine to execute this computation")
        return super().forward(inputs)


class LeavesProcess(Plain):
    """Starts a process that would outlive the trial, and writes its pid to a file."""

    def __init__(self, path: str):
        super().__init__()
        Path(path).write_text(str(subprocess.Popen(["sleep", "600"]).pid))


class RemovesFolder(Plain):
    """Removes the folder of its own trial."""

    def __init__(self, study: str):
        super().__init__()
        for folder in Path(study).glob("cells/*/trial-*"):
            shutil.rmtree(folder)
