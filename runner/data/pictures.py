"""Reading picture files into arrays, with damaged files named."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from runner.errors import Refusal

MEAN, DEVIATION = 0.5, 0.25  # of values from 0 to 1, roughly, in photographs


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture. Raises Refusal naming a file that is damaged or no picture, also while it is used."""
    try:
        with Image.open(path) as image:
            yield image
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # all of these come from Pillow for broken files
        raise Refusal(f"{path}: cannot be read ({error}); delete it or put a whole file in its place") from error


def header(path: Path) -> tuple[str, int, int]:
    """Pillow's mode, height and width of a picture, without decoding it."""
    with opened(path) as image:
        return image.mode, image.height, image.width


def read_pixels(path: Path, mode: str, size: int | None = None) -> Tensor:
    """Read a picture as uint8 (C, H, W); mode: Pillow's "L" or "RGB"; `size` resizes to size x size, bilinear.

    Raises Refusal for more than 8 bits a channel too: reducing them silently would clip most values.
    """
    with opened(path) as image:
        if image.mode[0] in "IF":
            raise Refusal(f"{path}: has more than 8 bits a channel; convert it to 8 bits")
        if image.mode != mode:
            image = image.convert(mode)
        if size is not None:
            image = image.resize((size, size), Image.Resampling.BILINEAR)
        array = np.array(image)
    return torch.from_numpy(array.reshape(*array.shape[:2], -1)).permute(2, 0, 1)


def read_values(path: Path) -> np.ndarray:
    """Read a mask as integers (H, W): grey values, or the indices of a palette."""
    with opened(path) as image:
        grey = image if image.mode in ("1", "L", "P") or image.mode[0] == "I" else image.convert("L")
        return np.array(grey).astype(np.int64)


def normalised(pixels: Tensor, mean: Tensor | float = MEAN, deviation: Tensor | float = DEVIATION) -> Tensor:
    """Bring uint8 (..., C, H, W) to about unit scale as contiguous float32.

    mean, deviation: of values from 0 to 1; a tensor (C, 1, 1) where channels differ.
    """
    return pixels.contiguous().float().div_(255).sub_(mean).div_(deviation)
