"""The ResNet-9 of which Jordan measures the spread over trainings (arXiv 2304.01910), after FFCV's CIFAR example."""

import torch
from torch import Tensor, nn


def resnet9(channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) with sides of at least 11 pixels to logits (B, classes).

    The last linear layer has no bias, and logits are scaled by 0.2. Weights are drawn as PyTorch draws them and lie
    channels-last, as Jordan has them in every precision.
    """
    network = nn.Sequential(
        convolution(channels, 64),
        convolution(64, 128, kernel_size=5, stride=2, padding=2),
        Residual(convolution(128, 128), convolution(128, 128)),
        convolution(128, 256),
        nn.MaxPool2d(2),
        Residual(convolution(256, 256), convolution(256, 256)),
        convolution(256, 128, padding=0),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes, bias=False),
        Scaled(0.2),
    )
    return network.to(memory_format=torch.channels_last)


def convolution(inputs: int, outputs: int, kernel_size: int = 3, stride: int = 1, padding: int = 1) -> nn.Module:
    """Convolution, batch normalisation, ReLU: (B, inputs, H, W) to (B, outputs, H', W')."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size, stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Residual(nn.Sequential):
    """What comes in plus what its modules make of it, of equal shapes."""

    def forward(self, features: Tensor) -> Tensor:
        """As the class says."""
        return features + super().forward(features)


class Scaled(nn.Module):
    """Every number times `factor`."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, logits: Tensor) -> Tensor:
        """As the class says."""
        return logits * self.factor
