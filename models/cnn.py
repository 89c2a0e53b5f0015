"""The plain convolutional networks of Zhuang et al. (MLSys 2022, arXiv 2106.11872), after the code of that paper.

Weights are drawn as Keras draws them, which that code uses.
"""

from itertools import pairwise

from torch import nn


def small_cnn(batch_norm: bool, channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) with sides of at least 8 pixels to logits (B, classes): there noise is taken apart.

    Three stages of 3x3 convolutions with 16, 32 and 32 channels, normalised if `batch_norm` is true; their mean over
    the image goes through a hidden layer of 32.
    """
    widths = pairwise([channels, 16, 32, 32])
    head = [nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes)]
    return _network([stage(*pair, kernel_size=3, batch_norm=batch_norm) for pair in widths], head)


def medium_cnn(kernel_size: int, channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) with sides of at least 64 pixels to logits (B, classes): there the kernel grows.

    Six stages with 16, 32, ..., 512 channels, normalised; `kernel_size` is odd. The paper has 224x224 images, 1000
    classes and kernel sizes 1, 3, 5 and 7.
    """
    widths = pairwise([channels, 16, 32, 64, 128, 256, 512])
    return _network([stage(*pair, kernel_size, batch_norm=True) for pair in widths], [nn.Linear(512, classes)])


def stage(inputs: int, outputs: int, kernel_size: int, batch_norm: bool) -> nn.Module:
    """Convolution, batch normalisation, ReLU, 2x2 maximum: (B, inputs, H, W) to (B, outputs, H // 2, W // 2)."""
    norm = [nn.BatchNorm2d(outputs)] if batch_norm else []
    convolution = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2)
    return nn.Sequential(convolution, *norm, nn.ReLU(), nn.MaxPool2d(2))


def _network(stages: list[nn.Module], head: list[nn.Module]) -> nn.Module:
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *head).apply(_draw_as_keras)


def _draw_as_keras(module: nn.Module) -> None:
    """Weights uniform as Glorot and Bengio have them (AISTATS 2010), biases 0."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
