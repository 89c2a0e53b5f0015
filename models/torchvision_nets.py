"""torchvision's networks by the names that they have there, for images with any number of channels."""

import torch
from torch import nn
from torchvision.models import get_model


def torchvision(architecture: str, channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) to logits (B, classes), untrained; ValueError for a name torchvision does not know.

    Where `channels` is not 3, the first convolution takes that many, its weights drawn as PyTorch draws them.
    """
    network: nn.Module = get_model(architecture, weights=None, num_classes=classes)
    if channels != 3:
        first = next(module for module in network.modules() if isinstance(module, nn.Conv2d))
        first.in_channels = channels
        first.weight = nn.Parameter(torch.empty(first.out_channels, channels, *first.kernel_size))
        first.reset_parameters()
    return network
