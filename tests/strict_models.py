"""Models with an operation that PyTorch calls not deterministic on a CPU too, and some that remember."""

import os
import warnings

import torch
from planted import Plain
from torch import Tensor, nn


class Puts(Plain):
    """Writes to a tensor by index, which PyTorch has no deterministic implementation of, whatever the indices are."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain; two outputs are overwritten by themselves."""
        outputs = super().forward(inputs)
        flat = outputs.flatten()
        places = torch.tensor([0, 5])
        return flat.put(places, flat[places]).view_as(outputs)


class PutsAndUnpools(Puts):
    """Has two such operations, and a warning of its own at every call."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Puts, of inputs of which the largest are kept."""
        warnings.warn("a warning of the model's own", stacklevel=1)
        largest, places = nn.functional.max_pool2d(inputs, 2, return_indices=True)
        return super().forward(nn.functional.max_unpool2d(largest, places, 2))


STEPS_OF_PROCESS = 0


class Remembers(Plain):
    """Counts the steps of its process in a global and scales by them after `free` steps: a second training differs."""

    def __init__(self, free: int):
        super().__init__()
        self.free = free

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, larger from step to step once these are more than are free."""
        global STEPS_OF_PROCESS
        STEPS_OF_PROCESS += self.training
        return super().forward(inputs) * (1 + max(STEPS_OF_PROCESS - self.free, 0) / 100)


PROCESS_NOISE = int.from_bytes(os.urandom(2), "big") / 1e5


class Settles(Plain):
    """Scales by a number that each process draws for itself once, as one that tunes draws its algorithms."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, scaled."""
        return super().forward(inputs) * (1 + PROCESS_NOISE)


class Drops(Plain):
    """Has dropout and running statistics: both begin anew with every training."""

    def __init__(self) -> None:
        super().__init__()
        self.net.insert(1, nn.Dropout(0.3))
        self.net.insert(1, nn.BatchNorm1d(64))
