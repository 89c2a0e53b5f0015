"""Models with a planted fault on a CUDA device."""

import time
from pathlib import Path

import torch
from planted import Plain
from torch import Tensor


class TooLarge(Plain):
    """Asks for more memory than any device has, in the benchmark mode alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        if torch.backends.cudnn.benchmark and self.training:
            torch.empty(2**46, dtype=torch.uint8, device=inputs.device)
        return super().forward(inputs)


class WrongIndex(Plain):
    """Reads beyond a tensor on the device, in the benchmark mode alone: no CUDA call of its process works any more."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        outputs = super().forward(inputs)
        index = torch.full((1,), 10**6 if torch.backends.cudnn.benchmark else 0, device=inputs.device)
        return outputs + outputs.new_zeros(3)[index]


class Holds(Plain):
    """Holds a GB of device memory and stays, once `path` names a file; else trains."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, or never."""
        if self.training and self.path:
            self.held = torch.ones(2**30, dtype=torch.uint8, device=inputs.device)
            torch.cuda.synchronize()
            Path(self.path).touch()
            time.sleep(600)
        return super().forward(inputs)


class NotesSpan(Plain):
    """Appends the host's time to a file at each training step: spans of several processes can be compared."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, and slow enough to meet others."""
        if self.training:
            time.sleep(0.05)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic()}\n")
        return super().forward(inputs)
