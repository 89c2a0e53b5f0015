"""scikit-learn's 1,797 handwritten digits, 8x8 pixels: real data that come with a dependency."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import TensorDataset

from runner.data.data import Data, every_fifth

MEAN, DEVIATION = 4.884, 6.017  # of all pixels, which run from 0 (paper) to 16 (ink)
INK = 8.0


def load(config: dict[str, Any]) -> Data:
    """The digits as images, as masks (0: paper, digit + 1: ink) or as sequences of 8 rows; every fifth is a test item.

    Bunch loaded by sklearn.datasets.load_digits (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits  # a second and more to import: only who needs it waits

    pixels, digits = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    pixels, digits = pixels.float().reshape(-1, 1, 8, 8), digits.long()
    inputs, targets = VIEWS[config["view"]](pixels, digits, config["size"] or 8)
    train, test = (TensorDataset(inputs[part], targets[part]) for part in every_fifth(len(inputs)))
    classes = 11 if config["view"] == "mask" else 10
    return Data(config["view"], train, test, tuple(inputs.shape[1:]), classes, config["resident"], config["workers"])


def _images(pixels: Tensor, digits: Tensor, size: int) -> tuple[Tensor, Tensor]:
    return functional.interpolate(_normalised(pixels), size=(size, size), mode="bilinear"), digits


def _masks(pixels: Tensor, digits: Tensor, size: int) -> tuple[Tensor, Tensor]:
    images, _ = _images(pixels, digits, size)
    masks = (pixels >= INK) * (digits + 1).reshape(-1, 1, 1, 1)
    return images, functional.interpolate(masks.float(), size=(size, size), mode="nearest").long()[:, 0]


def _sequences(pixels: Tensor, digits: Tensor, size: int) -> tuple[Tensor, Tensor]:
    return _normalised(pixels)[:, 0], digits


def _normalised(pixels: Tensor) -> Tensor:
    return (pixels - MEAN) / DEVIATION


VIEWS = {"image": _images, "mask": _masks, "sequence": _sequences}
