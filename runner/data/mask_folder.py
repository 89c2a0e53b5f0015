"""A user's folder of images with masks: images/NAME and masks/NAME."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from runner.data.data import BySize, Data, common_shape, every_fifth
from runner.data.pictures import header, normalised, read_pixels, read_values
from runner.dataset_files import images_in
from runner.errors import Refusal

GREY = ("1", "L", "LA")


@dataclass(frozen=True)
class Pair:
    """An image with its mask, both of `height` x `width` pixels; mode: Pillow's, of the image."""

    image: Path
    mask: Path
    mode: str
    height: int
    width: int


@dataclass(frozen=True)
class Piece:
    """The part of a pair that is one item."""

    pair: Pair
    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True, eq=False)
class Pieces(Dataset[tuple[Tensor, Tensor]]):
    """Pieces of one size, read when asked for; mode: Pillow's "L" or "RGB"; values: the grey value of each class."""

    pieces: list[Piece]
    mode: str
    values: tuple[int, ...]

    def __len__(self) -> int:
        """The number of pieces."""
        return len(self.pieces)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """The piece, float32 (C, H, W), and its mask, int64 (H, W)."""
        piece = self.pieces[index]
        pixels, classes = _read(piece.pair, self.mode, self.values)
        rows = slice(piece.top, piece.top + piece.height)
        columns = slice(piece.left, piece.left + piece.width)
        return normalised(pixels[:, rows, columns]), classes[rows, columns].clone()


def load(config: dict[str, Any]) -> Data:
    """The pairs of a folder, whole or cut into squares; what is left at the right and lower edge is dropped.

    Raises Refusal for a folder that cannot be used.
    """
    root, size = Path(config["root"]).expanduser(), config["size"]
    pairs = _pairs(root)
    if len(pairs) < 5:
        raise Refusal(f"dataset.root={root}: has {len(pairs)} pairs; every fifth is for testing, at least 5 are needed")
    mode = "L" if all(pair.mode in GREY for pair in pairs) else "RGB"
    values = tuple(sorted(set().union(*(np.unique(read_values(pair.mask)).tolist() for pair in pairs))))
    if len(values) < 2:
        raise Refusal(f"dataset.root={root}: the masks have one grey value only, {values[0]}; at least 2 are needed")
    train, test = (_pieces([pairs[i] for i in part], size, mode, values) for part in every_fifth(len(pairs)))
    channels = 1 if mode == "L" else 3
    shape = common_shape((channels, size or pair.height, size or pair.width) for pair in pairs)
    return Data("mask", train, test, shape, len(values), config["resident"], config["workers"], config["augment"])


def _pairs(root: Path) -> list[Pair]:
    images = {path.stem: path for path in images_in(root / "images")}
    masks = {path.stem: path for path in images_in(root / "masks")}
    if alone := images.keys() ^ masks.keys():
        name = min(alone)
        has, lacks = ("images", "masks") if name in images else ("masks", "images")
        raise Refusal(f"dataset.root={root}: {has}/ has {name}, {lacks}/ has not; each image needs one mask")
    return [_pair(path, masks[name]) for name, path in sorted(images.items())]


def _pair(image: Path, mask: Path) -> Pair:
    mode, height, width = header(image)
    _, *mask_size = header(mask)
    if mask_size != [height, width]:
        found = f"is {height}x{width}, its mask {mask_size[0]}x{mask_size[1]}"
        raise Refusal(f"{image}: {found} pixels; they must be equal")
    return Pair(image, mask, mode, height, width)


def _pieces(pairs: list[Pair], size: int | None, mode: str, values: tuple[int, ...]) -> Dataset[Any]:
    groups: dict[tuple[int, int], list[Piece]] = {}
    for pair in pairs:
        for piece in _cut(pair, size):
            groups.setdefault((piece.height, piece.width), []).append(piece)
    return BySize.of([Pieces(pieces, mode, values) for _, pieces in sorted(groups.items())])


def _cut(pair: Pair, size: int | None) -> list[Piece]:
    if size is None:
        return [Piece(pair, 0, 0, pair.height, pair.width)]
    if size > min(pair.height, pair.width):
        raise Refusal(
            f"dataset.size={size}: {pair.image} is {pair.height}x{pair.width} pixels; "
            f"choose at most {min(pair.height, pair.width)}"
        )
    tops, lefts = range(0, pair.height - size + 1, size), range(0, pair.width - size + 1, size)
    return [Piece(pair, top, left, size, size) for top in tops for left in lefts]


@lru_cache(maxsize=1)  # the pieces of a pair are mostly read one after another
def _read(pair: Pair, mode: str, values: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    classes = np.searchsorted(values, read_values(pair.mask))
    return read_pixels(pair.image, mode), torch.from_numpy(classes)
