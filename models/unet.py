"""The U-Net of Ronneberger, Fischer and Brox (MICCAI 2015, arXiv 1505.04597), for masks as large as the image."""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def unet(
    width: int, depth: int, upsampling: Literal["transposed", "bilinear"], channels: int, classes: int
) -> nn.Module:
    """A U-Net with `width` channels at full resolution and `depth` down-samplings; the paper's are 64 and 4."""
    return UNet(width, depth, upsampling, channels, classes)


class UNet(nn.Module):
    """Images (B, channels, H, W) to logits (B, classes, H, W), for any H and W of at least 2**depth pixels.

    Unlike the paper's, its convolutions are padded, so that sizes are kept, and followed by batch normalisation.
    """

    def __init__(
        self, width: int, depth: int, upsampling: Literal["transposed", "bilinear"], channels: int, classes: int
    ):
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        rising = widths[-2::-1]
        up = TransposedUp if upsampling == "transposed" else BilinearUp
        self.encoder = nn.ModuleList(DoubleConvolution(wide, out) for wide, out in pairwise([channels, *widths]))
        self.ups = nn.ModuleList(up(out) for out in rising)
        self.decoder = nn.ModuleList(DoubleConvolution(2 * out, out) for out in rising)
        self.head = nn.Conv2d(width, classes, kernel_size=1)

    def forward(self, images: Tensor) -> Tensor:
        """One logit for each class and pixel; ValueError for images too small to be halved `depth` times."""
        smallest = 2 ** len(self.ups)
        if min(images.shape[-2:]) < smallest:
            raise ValueError(f"images {tuple(images.shape)} have a side below {smallest}, the least for this U-Net")
        skips = [self.encoder[0](images)]
        for convolve in self.encoder[1:]:
            skips.append(convolve(F.max_pool2d(skips[-1], 2)))
        features = skips.pop()
        for up, convolve, skip in zip(self.ups, self.decoder, reversed(skips), strict=True):
            features = convolve(torch.cat([skip, up(features, skip.shape[-2:])], dim=1))
        return self.head(features)


class DoubleConvolution(nn.Sequential):
    """Twice: 3x3 convolution, batch normalisation, ReLU; (B, inputs, H, W) to (B, outputs, H, W)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class TransposedUp(nn.Module):
    """The paper's up-convolution, a learned 2x2 one: (B, 2 * outputs, h, w) to (B, outputs, *size)."""

    def __init__(self, outputs: int):
        super().__init__()
        self.convolution = nn.ConvTranspose2d(2 * outputs, outputs, kernel_size=2, stride=2)

    def forward(self, features: Tensor, size: torch.Size) -> Tensor:
        """`size` is 2h or 2h+1 by 2w or 2w+1: a side that was odd before pooling gets its last row back."""
        return self.convolution(features, output_size=list(size))


class BilinearUp(nn.Module):
    """A 1x1 convolution that halves the channels, then interpolation: (B, 2 * outputs, h, w) to (B, outputs, *size)."""

    def __init__(self, outputs: int):
        super().__init__()
        self.convolution = nn.Conv2d(2 * outputs, outputs, kernel_size=1)

    def forward(self, features: Tensor, size: torch.Size) -> Tensor:
        """`size` is the height and width to reach, in pixels."""
        # Both are linear, so their order does not matter to the result; this one convolves a quarter of the pixels.
        return F.interpolate(self.convolution(features), size=size, mode="bilinear", align_corners=False)
