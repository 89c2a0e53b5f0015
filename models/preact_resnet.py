"""Residual networks that normalise before they convolve (He et al., ECCV 2016, arXiv 1603.05027), for CIFAR's images.

As kuangliu/pytorch-cifar has them, whose names the code of arXiv 2410.02806 uses: no normalisation after the last
block.
"""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

BLOCKS: dict[int, tuple[int, ...]] = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
"""The number of blocks in each of the four stages, by depth."""


def preact_resnet(depth: int, channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) to logits (B, classes); `depth` is one of `BLOCKS`, else KeyError.

    The first convolution is 3x3 with stride 1. Weights are drawn as PyTorch draws them.
    """
    widths = [64 * 2**stage for stage, blocks in enumerate(BLOCKS[depth]) for _ in range(blocks)]
    return nn.Sequential(
        nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False),
        *(PreactivationBlock(inputs, outputs) for inputs, outputs in pairwise([64, *widths])),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], classes),
    )


class PreactivationBlock(nn.Module):
    """Twice normalisation, ReLU, 3x3 convolution, beside a shortcut: (B, inputs, H, W) to (B, outputs, H, W).

    With outputs != inputs the sides are halved, rounded up, and the shortcut is a 1x1 convolution.
    """

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.norm1 = nn.BatchNorm2d(inputs)
        self.convolution1 = nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.convolution2 = nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False)
        self.halved = None if stride == 1 else nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """As the class says."""
        active = F.relu(self.norm1(features))
        shortcut = features if self.halved is None else self.halved(active)
        return self.convolution2(F.relu(self.norm2(self.convolution1(active)))) + shortcut
