"""What the parent process says about files before anything starts."""

import gzip
import subprocess
import sys

import pytest
from data_files import cut_in_half, picture, settings
from test_data_torchvision_sets import write_cifar10, write_mnist

from runner.dataset_files import TORCHVISION_FILES, broken_torchvision_files, check_files
from runner.errors import ConfigError

VIEWS = {"mask_folder": "mask", "text": "next", "series": "forecast"}


def config(name, **changes):
    return settings(name, VIEWS.get(name, "image"), **changes)


def test_data_without_files_pass():
    check_files(config("digits"))
    check_files(config("synthetic"))


@pytest.mark.parametrize("name", TORCHVISION_FILES)
def test_missing_files_are_named_with_their_folder_and_the_remedy(tmp_path, name):
    folder, files = TORCHVISION_FILES[name]
    with pytest.raises(ConfigError, match=r"dataset\.root=.*dataset\.download=true") as told:
        check_files(config(name, root=str(tmp_path)))
    assert str(tmp_path / folder) in str(told.value) and ", ".join(files) in str(told.value)
    check_files(config(name, root=str(tmp_path), download=True))


def test_only_what_is_missing_is_named(tmp_path):
    raw = write_mnist(tmp_path)
    check_files(config("mnist", root=str(tmp_path)))
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(ConfigError, match="raw lacks t10k-labels-idx1-ubyte; "):
        check_files(config("mnist", root=str(tmp_path)))


@pytest.mark.parametrize(
    "damage", [cut_in_half, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"<html>")]
)
def test_a_damaged_idx_file_is_named(tmp_path, damage):
    raw = write_mnist(tmp_path)
    damage(raw / "train-images-idx3-ubyte")
    with pytest.raises(ConfigError, match=r"damaged: \S*train-images-idx3-ubyte; delete it, then set dataset"):
        check_files(config("mnist", root=str(tmp_path)))


def test_cifar_files_that_were_cut_short_are_named(tmp_path, monkeypatch):
    folder = write_cifar10(tmp_path, monkeypatch)
    check_files(config("cifar10", root=str(tmp_path)))
    for name in ("batches.meta", "data_batch_4"):
        cut_in_half(folder / name)
    with pytest.raises(ConfigError, match=r"damaged: \S*data_batch_4, \S*batches\.meta; delete it, then set dataset"):
        check_files(config("cifar10", root=str(tmp_path)))


def test_a_cifar_file_counts_as_whole_at_its_full_length_only(tmp_path, monkeypatch):
    path = write_cifar10(tmp_path, monkeypatch) / "batches.meta"
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert broken_torchvision_files("cifar10", tmp_path) == [path]


@pytest.mark.parametrize(
    "damage", [cut_in_half, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"x")]
)
@pytest.mark.parametrize(
    ("name", "archive"),
    [("mnist", "MNIST/raw/t10k-images-idx3-ubyte.gz"), ("cifar100", "cifar-100-python.tar.gz")],
)
def test_a_damaged_archive_is_named_beside_what_is_missing(tmp_path, name, archive, damage):
    path = tmp_path / archive
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(bytes(range(256))))
    with pytest.raises(ConfigError, match=r"lacks [^:]*; set dataset\.download=true"):
        check_files(config(name, root=str(tmp_path)))
    damage(path)
    with pytest.raises(ConfigError, match=f"lacks .*; damaged: {path}; delete it, then set dataset.download=true"):
        check_files(config(name, root=str(tmp_path)))


def test_image_folders(tmp_path):
    root = tmp_path / "images"
    with pytest.raises(ConfigError, match="there is no folder"):
        check_files(config("image_folder", root=str(root)))
    root.mkdir()
    with pytest.raises(ConfigError, match=r"no CLASS/image in .*; the layout is"):
        check_files(config("image_folder", root=str(root)))
    picture(root / "train" / "a" / "0.png", 0)
    with pytest.raises(ConfigError, match=r"no CLASS/image in .*test"):
        check_files(config("image_folder", root=str(root)))
    picture(root / "test" / "a" / "0.png", 0)
    check_files(config("image_folder", root=str(root)))


def test_mask_folders(tmp_path):
    picture(tmp_path / "images" / "0.png", 0)
    with pytest.raises(ConfigError, match=r"no image in .*masks; the layout is"):
        check_files(config("mask_folder", root=str(tmp_path)))
    picture(tmp_path / "masks" / "0.png", 0)
    check_files(config("mask_folder", root=str(tmp_path)))


@pytest.mark.parametrize("name", ["text", "series"])
def test_single_files(tmp_path, name):
    path = tmp_path / "file"
    with pytest.raises(ConfigError, match=r"dataset\.path=.*: there is no file"):
        check_files(config(name, path=str(path)))
    path.touch()
    with pytest.raises(ConfigError, match="is empty"):
        check_files(config(name, path=str(path)))
    path.write_text("x")
    check_files(config(name, path=str(path)))


def test_torch_is_not_imported():
    code = "import sys, runner.dataset_files; sys.exit(bool({'torch', 'torchvision', 'PIL'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
