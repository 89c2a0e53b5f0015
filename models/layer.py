"""One layer of a kind and as little else as possible: for the question which layers the cuDNN flags touch."""

from collections.abc import Callable

from torch import Tensor, nn


def layer(kind: str, head: bool, channels: int, classes: int) -> nn.Module:
    """Images (B, channels, H, W) to logits (B, classes), through one layer of this `kind`: see `OneLayer`.

    Without `head` it is the layer alone, to (B, channels, H', W'). `kind` is a key of `KINDS`, else KeyError. Weights
    are drawn as PyTorch draws them.
    """
    made = KINDS[kind](channels)
    return OneLayer(made, channels, classes) if head else made


class OneLayer(nn.Module):
    """The layer on the images themselves, the mean over what comes out of it, and a linear layer for the classes.

    The layer takes (B, channels, H, W) and gives (B, channels, H', W').
    """

    def __init__(self, layer: nn.Module, channels: int, classes: int):
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        """As the class says. While training, the gradient of the images is worked out too, as inside a network."""
        if self.training:
            images = images.detach().requires_grad_()
        return self.head(self.layer(images).mean((2, 3)))


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation of each pixel over its channels: (B, channels, H, W) to the same shape."""

    def forward(self, images: Tensor) -> Tensor:
        """As the class says."""
        return super().forward(images.movedim(1, -1)).movedim(-1, 1)


class Rows(nn.Module):
    """A recurrent layer over the rows of an image, each the mean of its pixels: (B, C, H, W) to (B, C, H, 1)."""

    def __init__(self, cells: nn.RNNBase):
        super().__init__()
        self.cells = cells

    def forward(self, images: Tensor) -> Tensor:
        """As the class says."""
        states, _ = self.cells(images.mean(3).transpose(1, 2))
        return states.transpose(1, 2).unsqueeze(3)


KINDS: dict[str, Callable[[int], nn.Module]] = {
    "convolution": lambda channels: nn.Conv2d(channels, channels, kernel_size=3, padding=1),
    "max_pooling": lambda channels: nn.MaxPool2d(2),
    "average_pooling": lambda channels: nn.AvgPool2d(2),
    "global_pooling": lambda channels: nn.AdaptiveAvgPool2d(1),
    "batch_norm": lambda channels: nn.BatchNorm2d(channels),
    "layer_norm": lambda channels: ChannelNorm(channels),
    "instance_norm": lambda channels: nn.InstanceNorm2d(channels, affine=True),
    "relu": lambda channels: nn.ReLU(),
    "sigmoid": lambda channels: nn.Sigmoid(),
    "tanh": lambda channels: nn.Tanh(),
    "rnn": lambda channels: Rows(nn.RNN(channels, channels, batch_first=True)),
    "lstm": lambda channels: Rows(nn.LSTM(channels, channels, batch_first=True)),
    "gru": lambda channels: Rows(nn.GRU(channels, channels, batch_first=True)),
}
"""The layer of each kind, for a number of channels."""
