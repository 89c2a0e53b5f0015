"""Models and data with what makes two trainings differ above operations, and beside them."""

import os
import random
import threading
import time
from typing import Any

import numpy as np
import torch
from planted import Plain, plain_data
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset


class Dropping(nn.Module):
    """A small classifier of 8x8 images with dropout and nothing wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


class ClockSeed(Dropping):
    """Seeds the generator of its dropout from the clock."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Dropping, in another way in every process."""
        torch.manual_seed(time.time_ns() % 2**63)
        return super().forward(inputs)


class ClockFactor(Plain):
    """Multiplies by a Python number that the clock gives, as a schedule by the time of day does."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, times a factor near 1."""
        return super().forward(inputs) * (1 + time.time_ns() % 10**9 / 1e12)


class ChangedBehind(Plain):
    """Changes an activation through NumPy, which shares its memory: PyTorch does not see it."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain; in training one hidden value is another in every process."""
        hidden = self.net[:3](inputs)
        if self.training:
            hidden.detach().numpy()[0, 0] += random.SystemRandom().random()
        return self.net[3](hidden)  # type: ignore[no-any-return]


class MadeOutside(Plain):
    """Adds numbers that NumPy drew from the operating system's entropy."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, plus noise."""
        noise = np.random.default_rng().random(10, dtype=np.float32)
        return super().forward(inputs) + torch.from_numpy(noise)


class ReadsUninitialised(Plain):
    """Adds memory that nobody has written to."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, plus what happens to lie in the memory of torch.empty."""
        memory = torch.empty(10)
        if self.training:  # what lies there is often the same by accident: here it never is
            memory.numpy()[:] = np.random.default_rng().random(10)
        return super().forward(inputs) + (memory if self.training else 0)


class OtherShape(Plain):
    """Pads its outputs by so many zeros as the operating system draws, and takes them away again."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, by operations on tensors of other shapes."""
        outputs = super().forward(inputs)
        return functional.pad(outputs, (0, random.SystemRandom().randrange(100_000)))[:, : outputs.shape[1]]


class ClockStart(Plain):
    """Draws its weights from a generator that the clock has seeded."""

    def __init__(self) -> None:
        torch.manual_seed(time.time_ns() % 2**63)
        super().__init__()


class Items(Dataset[Any]):
    """32 plain images that are asked for a batch at a time; `batches` counts what was asked for."""

    def __init__(self) -> None:
        train, _ = plain_data(64)
        assert isinstance(train, TensorDataset)
        self.inputs, self.targets = (tensor[:32].clone() for tensor in train.tensors)
        self.batches = 0

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.targets[index]

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        """A whole batch, which is how a DataLoader asks where it can."""
        self.batches += 1
        return [self[index] for index in indices]


class OtherOrder(Items):
    """From the second epoch on (batch 5 of 8 items each) other items come in every process."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        """The items asked for, in the second epoch any others."""
        others = random.SystemRandom().sample(range(len(self)), len(indices))
        return super().__getitems__(indices if self.batches < 4 else others)


class SeededByProcess(Items):
    """Draws noise from a generator that each loading process seeds with its own number."""

    generator: np.random.Generator | None = None

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.generator = self.generator or np.random.default_rng(os.getpid())
        inputs, target = super().__getitem__(index)
        return inputs + self.generator.standard_normal(), target


class Augmented(Items):
    """Shifts the brightness of images by what the operating system draws."""

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        inputs, target = super().__getitem__(index)
        return inputs + random.SystemRandom().gauss(0, 0.1), target


class Race(Items):
    """A thread started with the first batch writes into the images while the second one is made."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        """The items asked for; it is certain that the thread has written before the second batch."""
        items = [(inputs.clone(), target) for inputs, target in super().__getitems__(indices)]
        if self.batches == 1:
            thread = threading.Thread(target=self._write)
            thread.start()
            thread.join()
        return items

    def _write(self) -> None:
        self.inputs += random.SystemRandom().random()


def other_order() -> tuple[Dataset[Any], Dataset[Any]]:
    """Training and test set; so are the next three."""
    return OtherOrder(), Items()


def seeded_by_process() -> tuple[Dataset[Any], Dataset[Any]]:
    """Worker processes that seed themselves."""
    return SeededByProcess(), Items()


def augmented() -> tuple[Dataset[Any], Dataset[Any]]:
    """Augmentation that no seed reaches."""
    return Augmented(), Items()


def race() -> tuple[Dataset[Any], Dataset[Any]]:
    """A race in the loader after the first batch."""
    return Race(), Items()
