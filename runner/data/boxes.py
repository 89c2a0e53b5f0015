"""Images with textured rectangles and where these lie, the same in every process: what a detector can learn from."""

from math import isqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from runner.data.data import CUSTOM, Data
from runner.errors import Refusal

PATTERN, TRAIN, TEST = 0, 1, 2  # the seeds; no setting and no global generator has a say
TEXTURE = 4  # pixels of a texture's side, which repeats
LEAST_CELL = 8  # pixels, of which a rectangle takes half or more

Item = tuple[Tensor, dict[str, Tensor]]


def load(config: dict[str, Any]) -> Data:
    """Items (image, target): float32 (3, size, size) within [0, 1], and as torchvision's detectors take it, a dict of
    boxes float32 (n, 4) as left, top, right, bottom in pixels, and labels int64 (n,) from 1 to `classes`.

    An image has 1 to `boxes` rectangles, none over another. Raises Refusal for images too small for them.
    """  # noqa: D205
    size, boxes = config["size"], config["boxes"]
    if size < LEAST_CELL * _rows(boxes):
        least = LEAST_CELL * _rows(boxes)
        raise Refusal(f"dataset.size={size}: dataset.boxes={boxes} rectangles need at least {least} pixels; enlarge it")
    if config["resident"]:
        raise Refusal("dataset.resident=True: images with boxes are streamed; leave it out")
    textures = np.random.default_rng(PATTERN).random((config["classes"], 3, TEXTURE, TEXTURE), np.float32)
    train, test = (
        [_item(np.random.default_rng([seed, index]), textures, size, boxes) for index in range(config[count])]
        for seed, count in ((TRAIN, "items"), (TEST, "test_items"))
    )
    return Data(
        view=CUSTOM,
        train=train,  # type: ignore[arg-type]  # a list is map-style too
        test=test,  # type: ignore[arg-type]
        input_shape=(3, size, size),
        classes=config["classes"],
        resident=False,
        workers=config["workers"],
        collate=listed,
    )


def listed(items: list[Item]) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """A batch: the images and the targets, a list each, for images have different numbers of boxes."""
    return [image for image, _ in items], [target for _, target in items]


def _rows(boxes: int) -> int:
    """Of how many rows, and as many columns, of cells an image consists: a cell for each of its rectangles."""
    return isqrt(boxes - 1) + 1


def _item(random: Any, textures: np.ndarray, size: int, boxes: int) -> Item:
    rows = _rows(boxes)
    cell, count = size // rows, random.integers(1, boxes + 1)
    places = np.stack(np.divmod(random.permutation(rows * rows)[:count], rows), 1) * cell
    sides = random.integers(cell // 2, cell + 1, (count, 2))
    starts = places + random.integers(0, cell - sides + 1)
    kinds = random.integers(len(textures), size=count)
    image = random.random((3, size, size), np.float32) * np.float32(0.25)
    for (left, top), (right, bottom), kind in zip(starts, starts + sides, kinds, strict=True):
        down, across = np.arange(bottom - top) % TEXTURE, np.arange(right - left) % TEXTURE
        image[:, top:bottom, left:right] += np.float32(0.75) * textures[kind][:, down[:, None], across]
    corners = np.concatenate([starts, starts + sides], 1).astype(np.float32)
    return torch.from_numpy(image), {"boxes": torch.from_numpy(corners), "labels": torch.from_numpy(kinds + 1)}
