"""MNIST, Fashion-MNIST and CIFAR as torchvision reads and fetches them."""

from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch.utils.data import TensorDataset

from runner.data.data import Data
from runner.data.pictures import normalised
from runner.dataset_files import HOW_TO_FETCH, TORCHVISION_FILES, damaged_idx_files, missing_torchvision_files
from runner.errors import Refusal

# torchvision's class; mean and standard deviation of the training set's channels, values from 0 to 1.
SETS = {
    "mnist": ("MNIST", (0.1307,), (0.3081,)),
    "fashion_mnist": ("FashionMNIST", (0.2860,), (0.3530,)),
    "cifar10": ("CIFAR10", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": ("CIFAR100", (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}

# What torchvision raises for files that are missing, half there or damaged, and for a download that fails.
_UNREADABLE = (RuntimeError, OSError, ValueError, IndexError, AssertionError, EOFError)


def load(config: dict[str, Any]) -> Data:
    """One of torchvision's data sets under `root`, fetched first if asked for and not there.

    Raises Refusal naming the files that are missing or damaged and what to do.
    """
    raw = [_opened(config, train) for train in (True, False)]
    train, test = (_tensors(config["name"], part) for part in raw)
    shape, classes = tuple(train.tensors[0].shape[1:]), len(raw[0].classes)
    return Data("image", train, test, shape, classes, config["resident"], config["workers"], config["augment"])


def _tensors(name: str, raw: Any) -> TensorDataset:
    mean, deviation = (torch.tensor(values).reshape(-1, 1, 1) for values in SETS[name][1:])
    pixels = torch.as_tensor(raw.data)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)
    return TensorDataset(normalised(pixels, mean, deviation), torch.as_tensor(raw.targets))


def _opened(config: dict[str, Any], train: bool) -> Any:
    from torchvision import datasets  # a second to import: only who needs it waits

    name, root = config["name"], Path(config["root"]).expanduser()
    kind = getattr(datasets, SETS[name][0])
    try:
        return kind(root, train=train)
    except _UNREADABLE as error:
        if not config["download"]:
            raise Refusal(_what_is_wrong(kind, name, root)) from error
    # One process fetches, those that came at the same time wait and find the files. A whole set never comes here:
    # its folder may be read-only.
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{name}.lock"):
        try:
            return kind(root, train=train, download=True)
        except _UNREADABLE as error:
            raise Refusal(f"{_what_is_wrong(kind, name, root)} (fetching: {error})") from error


def _what_is_wrong(kind: Any, name: str, root: Path) -> str:
    folder = root / TORCHVISION_FILES[name][0]
    if missing := missing_torchvision_files(name, root):
        return f"dataset.root={root}: {folder} lacks {', '.join(missing)}; put them there or {HOW_TO_FETCH}"
    damaged = _damaged_cifar_files(kind, folder) if name.startswith("cifar") else damaged_idx_files(name, root)
    named = ", ".join(map(str, damaged)) or str(folder)
    return f"dataset.root={root}: damaged: {named}; delete it, then {HOW_TO_FETCH}"


def _damaged_cifar_files(kind: Any, folder: Path) -> list[Path]:
    from torchvision.datasets.utils import check_integrity

    sums = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
    return [folder / file for file, md5 in sums if not check_integrity(str(folder / file), md5)]
