"""Random changes to training images, drawn from a generator of their own."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from runner.data.transfer import handed_over

Batch = tuple[Tensor, Tensor]
PADDING = 4


def augmented(batches: Iterator[Batch], view: str, seed: int) -> Iterator[Batch]:
    """Change each batch at random: images are cropped and mirrored, masks are mirrored together with their image.

    The numbers are drawn on the CPU, batch after batch, so neither the device nor how the items were read matters.
    """
    generator = torch.Generator().manual_seed(seed)
    for inputs, targets in batches:
        if view == "image":
            yield cropped(inputs, generator), targets
        else:
            yield mirrored(inputs, targets, generator)


def cropped(images: Tensor, generator: torch.Generator) -> Tensor:
    """Pad (B, C, H, W) by 4 zeros a side, cut out H x W at a random place and mirror half of them left to right."""
    count, _, height, width = images.shape
    corner = torch.randint(2 * PADDING + 1, (2, count, 1), generator=generator)
    rows = corner[0] + torch.arange(height)
    columns = corner[1] + torch.arange(width)
    columns = torch.where(_coin(count, generator)[:, None], columns.flip(1), columns)
    padded = functional.pad(images, [PADDING] * 4)
    places = torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]
    item, row, column = (handed_over(place, images.device) for place in places)
    return padded[item, :, row, column].permute(0, 3, 1, 2).contiguous()


def mirrored(images: Tensor, masks: Tensor, generator: torch.Generator) -> Batch:
    """Mirror (B, C, H, W) and (B, H, W) alike: half of the items left to right, half upside down."""
    for axis in (-1, -2):
        chosen = handed_over(_coin(len(images), generator), images.device)
        images = torch.where(chosen[:, None, None, None], images.flip(axis), images)
        masks = torch.where(chosen[:, None, None], masks.flip(axis), masks)
    return images, masks


def _coin(count: int, generator: torch.Generator) -> Tensor:
    return torch.rand(count, generator=generator) < 0.5
