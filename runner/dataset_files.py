"""The files that a data set reads, checked without torch: a study whose data are missing ends before it begins."""

import gzip
import pickletools
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

from runner.errors import ConfigError

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff")

_IDX = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
TORCHVISION_FILES = {
    "mnist": ("MNIST/raw", _IDX),
    "fashion_mnist": ("FashionMNIST/raw", _IDX),
    "cifar10": ("cifar-10-batches-py", (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta")),
    "cifar100": ("cifar-100-python", ("train", "test", "meta")),
}
_CIFAR_ARCHIVES = {"cifar10": "cifar-10-python.tar.gz", "cifar100": "cifar-100-python.tar.gz"}
HOW_TO_FETCH = "set dataset.download=true (it also unpacks an archive that is already there)"


def check_files(config: dict[str, Any]) -> None:
    """Check that what the data set reads is there; a data set without files of its own passes.

    config: the plain dataset settings. Raises ConfigError naming the key, the path and what to do.
    """
    check = CHECKS.get(config["name"])
    if check is not None:
        check(config)


def images_in(folder: Path) -> list[Path]:
    """The image files directly in a folder, by name; hidden files and others are passed over."""
    return sorted(path for path in folder.iterdir() if _is_image(path))


def class_folders(folder: Path) -> list[Path]:
    """The sub-folders with at least one image in them, by name: each is a class."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and any(map(_is_image, path.iterdir())))


def count_images(folder: Path) -> int:
    """How many image files lie in a folder and below it; none in one that is not there."""
    return sum(map(_is_image, folder.rglob("*")))


def broken_torchvision_files(name: str, root: Path) -> list[Path]:
    """Those files of a torchvision data set under `root` that are missing or, by their own format, not whole."""
    folder, names = TORCHVISION_FILES[name]
    is_whole = _is_whole_pickle if name in _CIFAR_ARCHIVES else _is_whole_idx
    paths = [root / folder / file for file in names]
    return [path for path in paths if not path.is_file() or not is_whole(path)]


def torchvision_fault(name: str, root: Path) -> str | None:
    """What is wrong with the files of a torchvision data set and what to do about it; None if they look whole."""
    broken = broken_torchvision_files(name, root)
    if missing := [path.name for path in broken if not path.exists()]:
        folder = (root / TORCHVISION_FILES[name][0]).resolve()
        return f"{folder} lacks {', '.join(missing)}; {_delete(_damaged_archives(name, root))}{HOW_TO_FETCH}"
    return f"{_delete(broken)}{HOW_TO_FETCH}" if broken else None


def _delete(damaged: list[Path]) -> str:
    return f"damaged: {', '.join(str(path.resolve()) for path in damaged)}; delete it, then " if damaged else ""


def _damaged_archives(name: str, root: Path) -> list[Path]:
    """What an interrupted download leaves behind."""
    folder, names = TORCHVISION_FILES[name]
    is_cifar = name in _CIFAR_ARCHIVES
    archives = [root / _CIFAR_ARCHIVES[name]] if is_cifar else [root / folder / f"{file}.gz" for file in names]
    return [path for path in archives if path.is_file() and not _is_whole_gzip(path)]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def _is_whole_idx(path: Path) -> bool:
    # The idx format: two zero bytes, the type (8: unsigned byte), the number of dimensions, each as big-endian int32.
    with path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:3] != b"\0\0\x08":
            return False
        sizes = [int.from_bytes(file.read(4), "big") for _ in range(head[3])]
    return path.stat().st_size == 4 + 4 * len(sizes) + prod(sizes)


def _is_whole_pickle(path: Path) -> bool:
    # Walked to its end, not loaded: nothing in it is executed. Damage within is for torchvision's sums to find.
    try:
        with path.open("rb") as file:
            for _ in pickletools.genops(file):
                pass
    except ValueError:
        return False
    return True


def _is_whole_gzip(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return path.stat().st_size > 0  # gzip takes an empty file for no data


def _check_torchvision(config: dict[str, Any]) -> None:
    if config["download"]:
        return  # runner.fetch looks, and fetches what is not whole
    if fault := torchvision_fault(config["name"], Path(config["root"]).expanduser()):
        raise ConfigError("dataset.root", config["root"], fault)


def _check_image_folder(config: dict[str, Any]) -> None:
    root = _existing_folder(config)
    parts = [root / "train", root / "test"] if (root / "train").is_dir() else [root]
    for part in parts:
        if not part.is_dir() or not class_folders(part):
            layout = "train/CLASS/* and test/CLASS/*, or CLASS/* alone"
            raise ConfigError("dataset.root", config["root"], f"no CLASS/image in {part}; the layout is {layout}")


def _check_mask_folder(config: dict[str, Any]) -> None:
    root = _existing_folder(config)
    for part in (root / "images", root / "masks"):
        if not part.is_dir() or not images_in(part):
            layout = "images/NAME and masks/NAME"
            raise ConfigError("dataset.root", config["root"], f"no image in {part}; the layout is {layout}")


def _check_file(config: dict[str, Any]) -> None:
    path = Path(config["path"]).expanduser().resolve()
    if not path.is_file():
        raise ConfigError("dataset.path", config["path"], f"there is no file {path}; give the path of one")
    if path.stat().st_size == 0:
        raise ConfigError("dataset.path", config["path"], f"{path} is empty; give the path of a file with data")


def _existing_folder(config: dict[str, Any]) -> Path:
    root = Path(config["root"]).expanduser().resolve()
    if not root.is_dir():
        raise ConfigError("dataset.root", config["root"], f"there is no folder {root}; give the path of one")
    return root


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    **dict.fromkeys(TORCHVISION_FILES, _check_torchvision),
    "image_folder": _check_image_folder,
    "mask_folder": _check_mask_folder,
    "text": _check_file,
    "series": _check_file,
}
