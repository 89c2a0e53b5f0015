"""Narrow residual networks for CIFAR's 32x32 images, as Summers and Dinneen have them (ICML 2021, arXiv 2103.04514).

He et al. (CVPR 2016, arXiv 1512.03385) gave the shape: three stages of 16, 32 and 64 channels. Theirs is the shortcut
without weights; the normalisation in it and the blocks that start as identities are Summers and Dinneen's.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTHS = (16, 32, 64)


def resnet_cifar(depth: int, channels: int, classes: int) -> nn.Module:
    """A residual network of 6n + 2 layers with n blocks a stage: images (B, channels, H, W) to logits (B, classes).

    Summers and Dinneen's `depth` is 14, He et al.'s are 20, 32, 44, 56 and 110. ValueError for one that is not 6n + 2.
    """
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise ValueError(f"depth={depth}: is not 6n + 2 with n blocks a stage; take 14, 20, 32, 44, 56 or 110")
    stages = [block for width in WIDTHS for block in [width] * blocks]
    network = nn.Sequential(
        nn.Conv2d(channels, WIDTHS[0], kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(inplace=True),
        *(Block(inputs, outputs) for inputs, outputs in pairwise([WIDTHS[0], *stages])),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTHS[-1], classes),
    )
    _draw(network)
    return network


def _draw(network: nn.Module) -> None:
    """Draw the convolutions as Kaiming He does, by what goes out of them, and let every block begin as an identity."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, Block):
            nn.init.zeros_(module.norm2.weight)


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut: (B, inputs, H, W) to (B, outputs, H, W).

    With outputs = 2 * inputs the sides are halved, rounded up; the shortcut then takes every second pixel, normalises
    and fills the new channels with zeros.
    """

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.convolution1 = nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.convolution2 = nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.halved = None if stride == 1 else nn.Sequential(nn.AvgPool2d(1, stride), nn.BatchNorm2d(inputs))

    def forward(self, features: Tensor) -> Tensor:
        """As the class says."""
        shortcut = features
        if self.halved is not None:
            halved = self.halved(features)
            shortcut = torch.cat([halved, torch.zeros_like(halved)], dim=1)
        inner = F.relu(self.norm1(self.convolution1(features)))
        return F.relu(self.norm2(self.convolution2(inner)) + shortcut)
