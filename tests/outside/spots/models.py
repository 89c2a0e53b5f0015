"""The network of the task."""

import os

import torch
from torch import Tensor, nn

Tensors = dict[str, Tensor]


class Gain(nn.Module):
    """Takes the exposure out; with `jitter` by a little more or less than that, as an unseeded augmentation does."""

    def __init__(self, jitter: bool):
        super().__init__()
        self.jitter = jitter

    def forward(self, pictures: Tensor, exposure: Tensor) -> Tensor:
        """(B, 1, H, W) and (B,) -> (B, 1, H, W)."""
        even = pictures / exposure[:, None, None, None]
        if self.jitter:
            even = even * (1 + int.from_bytes(os.urandom(2), "big") / 1e5)  # the planted difference
        return even


class Spotter(nn.Module):
    """Two convolutions, then a number a pixel and three a picture."""

    def __init__(self, width: int, jitter: bool):
        super().__init__()
        self.gain = Gain(jitter)
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)
        )
        self.heat = nn.Conv2d(width, 1, 1)
        self.count = nn.Linear(width, 3)

    def forward(self, inputs: Tensors) -> Tensors:
        """Logits: of a spot in each pixel (B, H, W), and of 0, 1 or 2 spots (B, 3)."""
        found = torch.relu(self.features(self.gain(inputs["picture"], inputs["exposure"])))
        return {"heat": self.heat(found)[:, 0], "count": self.count(found.amax((2, 3)))}

    def predictions(self, outputs: Tensors) -> Tensor:
        """What trials may disagree in: the counts."""
        return outputs["count"].argmax(1)
