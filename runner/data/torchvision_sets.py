"""MNIST, Fashion-MNIST and CIFAR as torchvision reads them in a trial, and fetches them before any."""

import json
import os
import shutil
import socket
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch.utils.data import TensorDataset

from runner.data.data import Data
from runner.data.pictures import normalised
from runner.dataset_files import HOW_TO_FETCH, TORCHVISION_FILES, broken_torchvision_files, torchvision_fault
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
_NOT_FETCHED = (RuntimeError, OSError, HTTPException)

SILENCE = 30.0  # seconds without an answer after which a download has failed: networks that swallow packets exist


def load(config: dict[str, Any]) -> Data:
    """One of torchvision's data sets under `root`. Only read: a trial fetches nothing.

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


def fetch(path: str) -> int:
    """Fetch what is missing or not whole of the data set whose plain settings this JSON file holds.

    For a process of its own before the first trial. Of several at the same time one fetches, the others wait and find
    the files. Returns the exit status 0. Raises OSError or RuntimeError in one line if it cannot be done.
    """
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    name, root = config["name"], Path(config["root"]).expanduser()
    socket.setdefaulttimeout(SILENCE)
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{name}.lock"):
        if broken := broken_torchvision_files(name, root):
            _replace(broken, _archives(name, root, broken))
    return 0


def _replace(broken: list[Path], archives: list[tuple[list[str], Path, str]]) -> None:
    """Unpack aside, then rename: no file is ever half there, and one that is whole stays as it is."""
    aside = broken[0].parent / ".unpacked"
    aside.mkdir(parents=True, exist_ok=True)
    try:
        for urls, archive, md5 in archives:
            _unpack(urls, archive, md5, aside)
        for path in broken:
            os.replace(next(aside.rglob(path.name)), path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _unpack(urls: list[str], archive: Path, md5: str, folder: Path) -> None:
    """Unpack an archive into a folder, fetched from the first address that gives it unless it is there and whole."""
    from torchvision.datasets.utils import download_and_extract_archive

    failed = []
    for url in urls:
        try:
            download_and_extract_archive(url, str(archive.parent), str(folder), archive.name, md5)
            return
        except _NOT_FETCHED as error:
            failed.append(" ".join(f"{url}: {error}".split()))
    raise RuntimeError("; ".join(failed))


def _archives(name: str, root: Path, broken: list[Path]) -> list[tuple[list[str], Path, str]]:
    """The archives that hold the broken files: the addresses, the path and the MD5 of each."""
    kind, folder = _kind(name), broken[0].parent
    if name.startswith("cifar"):
        return [([kind.url], root / kind.filename, kind.tgz_md5)]
    needed = [(file, md5) for file, md5 in kind.resources if folder / file.removesuffix(".gz") in broken]
    return [([f"{mirror}{file}" for mirror in kind.mirrors], folder / file, md5) for file, md5 in needed]


def _kind(name: str) -> Any:
    from torchvision import datasets  # a second to import: only who needs it waits

    return getattr(datasets, SETS[name][0])


def _opened(config: dict[str, Any], train: bool) -> Any:
    name, root = config["name"], Path(config["root"]).expanduser()
    kind = _kind(name)
    try:
        return kind(root, train=train)
    except _UNREADABLE as error:
        fault = torchvision_fault(name, root) or _other_damage(kind, root / TORCHVISION_FILES[name][0])
        raise Refusal(f"dataset.root={root}: {fault}") from error


def _other_damage(kind: Any, folder: Path) -> str:
    """What only torchvision's sums find, where it has some."""
    from torchvision.datasets.utils import check_integrity

    sums = []
    if hasattr(kind, "meta"):
        sums = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
    damaged = [folder / file for file, md5 in sums if not check_integrity(str(folder / file), md5)] or [folder]
    return f"damaged: {', '.join(map(str, damaged))}; delete it, then {HOW_TO_FETCH}"
