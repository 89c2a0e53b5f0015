"""MNIST and CIFAR from tiny files in their own formats; nothing is fetched."""

import gzip
import hashlib
import pickle
import threading

import numpy as np
import pytest
import torch
from data_files import cut_in_half, settings
from torchvision import datasets

from runner.data import load
from runner.data.torchvision_sets import SETS
from runner.dataset_files import TORCHVISION_FILES
from runner.errors import Refusal


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def write_mnist(root, folder="MNIST"):
    raw, random = root / folder / "raw", np.random.default_rng(0)
    raw.mkdir(parents=True)
    for part, count in (("train", 20), ("t10k", 10)):
        images = random.integers(256, size=(count, 28, 28), dtype=np.uint8)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8) % 10))
    return raw


def write_cifar10(root, monkeypatch):
    folder, random = root / "cifar-10-batches-py", np.random.default_rng(0)
    folder.mkdir(parents=True)
    sums = {}
    for name in TORCHVISION_FILES["cifar10"][1]:
        data = random.integers(256, size=(10, 3072), dtype=np.uint8)
        content = {"label_names": list("abcdefghij")} if "meta" in name else {"data": data, "labels": list(range(10))}
        (folder / name).write_bytes(pickle.dumps(content))
        sums[name] = hashlib.md5((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(
        datasets.CIFAR10, "train_list", [(f"data_batch_{i}", sums[f"data_batch_{i}"]) for i in range(1, 6)]
    )
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [("test_batch", sums["test_batch"])])
    monkeypatch.setitem(datasets.CIFAR10.meta, "md5", sums["batches.meta"])
    return folder


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_mnist_is_read_and_normalised(tmp_path, name, folder):
    raw = write_mnist(tmp_path, folder)
    data = load(settings(name, "image", root=str(tmp_path), augment=True))
    assert (data.input_shape, data.classes, len(data.train), len(data.test)) == ((1, 28, 28), 10, 20, 10)
    assert data.augment
    pixels = np.frombuffer((raw / "t10k-images-idx3-ubyte").read_bytes()[16:], np.uint8).reshape(10, 1, 28, 28)
    _, (mean,), (deviation,) = SETS[name]
    assert np.allclose(data.test.tensors[0].numpy(), (pixels / 255 - mean) / deviation, atol=1e-5)
    assert data.test.tensors[1].tolist() == list(range(10))


def test_cifar_is_read_with_its_channels_first(tmp_path, monkeypatch):
    folder = write_cifar10(tmp_path, monkeypatch)
    data = load(settings("cifar10", "image", root=str(tmp_path)))
    assert (data.input_shape, data.classes, len(data.train), len(data.test)) == ((3, 32, 32), 10, 50, 10)
    pixels = pickle.loads((folder / "test_batch").read_bytes())["data"].reshape(10, 3, 32, 32)
    expected = (pixels[:, 2] / 255 - 0.4465) / 0.2616
    assert np.allclose(data.test.tensors[0][:, 2].numpy(), expected, atol=1e-5)
    assert data.test.tensors[0].is_contiguous() and data.test.tensors[1].dtype == torch.int64


@pytest.mark.parametrize("file", TORCHVISION_FILES["mnist"][1])
def test_a_truncated_mnist_file_is_named(tmp_path, file):
    cut_in_half(write_mnist(tmp_path) / file)
    with pytest.raises(Refusal, match=f"damaged: .*{file}; delete it"):
        load(settings("mnist", "image", root=str(tmp_path)))


def test_a_damaged_cifar_file_is_named(tmp_path, monkeypatch):
    path = write_cifar10(tmp_path, monkeypatch) / "data_batch_3"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(Refusal, match=r"damaged: \S*data_batch_3; delete it, then set dataset\.download=true"):
        load(settings("cifar10", "image", root=str(tmp_path)))


def test_what_is_missing_is_named_with_its_folder(tmp_path, monkeypatch):
    (write_cifar10(tmp_path, monkeypatch) / "test_batch").unlink()
    with pytest.raises(Refusal, match=r"cifar-10-batches-py lacks test_batch; put .*dataset\.download=true"):
        load(settings("cifar10", "image", root=str(tmp_path)))


def test_a_failed_download_says_what_is_missing_and_why(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", refused)
    with pytest.raises(Refusal, match=r"cifar-100-python lacks train, test, meta.*no route to host"):
        load(settings("cifar100", "image", root=str(tmp_path / "new"), download=True))


def test_those_that_start_together_fetch_once(tmp_path, monkeypatch):
    calls = []

    def fetch(url, download_root, filename, md5):
        calls.append(filename)
        if len(calls) == 1:
            made = write_mnist(tmp_path / "server")
            for path in made.iterdir():
                (tmp_path / "server" / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        name = filename.removesuffix(".gz")
        with gzip.open(tmp_path / "server" / filename) as source:
            (tmp_path / "data" / "MNIST" / "raw" / name).write_bytes(source.read())

    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", fetch)
    config = settings("mnist", "image", root=str(tmp_path / "data"), download=True)
    lengths = []
    threads = [threading.Thread(target=lambda: lengths.append(len(load(config).train))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == [20] * 4 and len(calls) == 4


def test_a_whole_set_is_read_from_a_read_only_folder_though_download_is_on(tmp_path, monkeypatch):
    write_mnist(tmp_path)
    monkeypatch.setattr("runner.data.torchvision_sets.FileLock", None)  # calling it would fail
    assert len(load(settings("mnist", "image", root=str(tmp_path), download=True)).train) == 20
