"""MNIST and CIFAR from tiny files in their own formats; nothing is fetched."""

import hashlib
import pickle

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
    with pytest.raises(Refusal, match=r"cifar-10-batches-py lacks test_batch; set dataset\.download=true"):
        load(settings("cifar10", "image", root=str(tmp_path)))


def test_a_trial_fetches_nothing(tmp_path, monkeypatch):
    for module in ("mnist", "cifar", "utils"):
        monkeypatch.setattr(f"torchvision.datasets.{module}.download_and_extract_archive", None)  # a call would fail
    for name in SETS:
        with pytest.raises(Refusal, match=r"lacks .*; .*dataset\.download=true"):
            load(settings(name, "image", root=str(tmp_path), download=True))
    assert list(tmp_path.iterdir()) == []


def test_a_whole_set_is_only_read_though_download_is_on(tmp_path, monkeypatch):
    write_mnist(tmp_path)
    monkeypatch.setattr("runner.data.torchvision_sets.FileLock", None)  # calling it would fail: read-only folders exist
    assert len(load(settings("mnist", "image", root=str(tmp_path), download=True)).train) == 20


def test_a_file_that_no_format_explains_is_refused_with_its_folder(tmp_path):
    raw = write_mnist(tmp_path)
    (raw / "train-images-idx3-ubyte").write_bytes(idx(np.zeros(20, dtype=np.uint8)))
    with pytest.raises(Refusal, match=f"damaged: {raw}; delete it"):
        load(settings("mnist", "image", root=str(tmp_path)))
