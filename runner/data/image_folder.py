"""A user's folder of images, one sub-folder a class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from runner.data.data import Data, every_fifth
from runner.data.pictures import header, normalised, read_pixels
from runner.dataset_files import class_folders, images_in
from runner.errors import Refusal

Labelled = list[tuple[Path, int]]


@dataclass(frozen=True, eq=False)
class ImageFiles(Dataset[tuple[Tensor, Tensor]]):
    """Images read when asked for, as RGB of `shape` (H, W): resized where `resize`, else refused if they differ."""

    files: Labelled
    shape: tuple[int, int]
    resize: bool

    def __len__(self) -> int:
        """The number of images."""
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """The image, float32 (3, H, W), and its class."""
        path, label = self.files[index]
        pixels = read_pixels(path, "RGB", self.shape[0] if self.resize else None)
        if pixels.shape[1:] != self.shape:
            sizes = [f"{height}x{width}" for height, width in (pixels.shape[1:], self.shape)]
            raise Refusal(f"{path}: is {sizes[0]}, the first image is {sizes[1]}; set dataset.size to resize all")
        return normalised(pixels), torch.tensor(label)


def load(config: dict[str, Any]) -> Data:
    """The images of train/CLASS and test/CLASS, or of CLASS alone: then every fifth of a class is for testing.

    Classes are the sorted names of the sub-folders that hold images. Raises Refusal for a folder that cannot be used.
    """
    root = Path(config["root"]).expanduser()
    split = (root / "train").is_dir()
    names = [folder.name for folder in class_folders(root / "train" if split else root)]
    train, test = _given_split(root, names) if split else _own_split(root, names)
    if not train or not test:
        raise Refusal(f"dataset.root={root}: {len(train)} training and {len(test)} test images; both are needed")
    size = config["size"]
    shape = (size, size) if size else header(train[0][0])[1:]
    resize = size is not None
    return Data(
        "image",
        ImageFiles(train, shape, resize),
        ImageFiles(test, shape, resize),
        (3, *shape),
        len(names),
        config["resident"],
        config["workers"],
        config["augment"],
    )


def _given_split(root: Path, names: list[str]) -> tuple[Labelled, Labelled]:
    if unknown := {folder.name for folder in class_folders(root / "test")} - set(names):
        raise Refusal(f"dataset.root={root}: test/ has the class {min(unknown)}, train/ has not")
    train = [(path, label) for label, name in enumerate(names) for path in images_in(root / "train" / name)]
    tested = [label for label, name in enumerate(names) if (root / "test" / name).is_dir()]
    return train, [(path, label) for label in tested for path in images_in(root / "test" / names[label])]


def _own_split(root: Path, names: list[str]) -> tuple[Labelled, Labelled]:
    train: Labelled = []
    test: Labelled = []
    for label, name in enumerate(names):
        files = [(path, label) for path in images_in(root / name)]
        for part, indices in zip((train, test), every_fifth(len(files)), strict=True):
            part.extend(files[index] for index in indices)
    return train, test
