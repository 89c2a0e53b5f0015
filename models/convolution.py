"""A single convolution of any shape: what reports and posts time when they speak of the flags' cost."""

from torch import Tensor, nn

CONVOLUTIONS: dict[tuple[int, bool], type[nn.Module]] = {
    (1, False): nn.Conv1d,
    (2, False): nn.Conv2d,
    (1, True): nn.ConvTranspose1d,
    (2, True): nn.ConvTranspose2d,
}
"""The class by the number of dimensions and by whether it is transposed."""


def convolution(
    outputs: int,
    kernel_size: int,
    stride: int,
    dilation: int,
    transposed: bool,
    input_gradient: bool,
    head: bool,
    dimensions: int,
    channels: int,
    classes: int,
) -> nn.Module:
    """A convolution without padding from `channels` to `outputs` channels, and a head: see `OneConvolution`.

    Without `head` it is the layer alone, which gives (B, outputs, H', W') or (B, outputs, T'). `dimensions` is 2 for
    images and 1 for sequences, else KeyError. Weights are drawn as PyTorch draws them.
    """
    kind = CONVOLUTIONS[dimensions, transposed]
    layer = kind(channels, outputs, kernel_size, stride=stride, dilation=dilation)
    if not head:
        return layer if dimensions == 2 else Transposed(layer)
    return OneConvolution(layer, nn.Linear(outputs, classes), input_gradient)


class Transposed(nn.Module):
    """Sequences (B, T, channels) through a layer that takes (B, channels, T); what comes out stays as it has it."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, sequences: Tensor) -> Tensor:
        """As the class says."""
        return self.layer(sequences.transpose(1, 2))


class OneConvolution(nn.Module):
    """Images (B, channels, H, W), or sequences (B, T, channels), to logits (B, classes).

    The head is the mean over all places and a linear layer. With `input_gradient` the gradient of the inputs is worked
    out while training, as inside a network; without it they are data, as in front of one.
    """

    def __init__(self, layer: nn.Module, head: nn.Linear, input_gradient: bool):
        super().__init__()
        self.layer = layer
        self.head = head
        self.input_gradient = input_gradient

    def forward(self, inputs: Tensor) -> Tensor:
        """As the class says."""
        if inputs.dim() == 3:
            inputs = inputs.transpose(1, 2)
        if self.training and self.input_gradient:
            inputs = inputs.detach().requires_grad_()
        return self.head(self.layer(inputs).flatten(2).mean(2))
