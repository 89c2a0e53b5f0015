"""Folders of images, made here and real."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from data_files import cut_in_half, picture, real_data, settings

from runner.data import load
from runner.data.residence import place
from runner.errors import Refusal


def config(root, **changes):
    return settings("image_folder", "image", root=str(root), **changes)


def test_classes_and_files_are_in_the_order_of_their_names(tmp_path):
    for name, value in (("b", 20), ("a", 10), ("c", 30)):
        for number in (2, 10, 1):
            picture(tmp_path / "train" / name / f"{number:02d}.png", value + number)
        picture(tmp_path / "test" / name / "0.JPG", value)
    (tmp_path / "train" / "empty").mkdir()
    (tmp_path / "train" / "a" / "notes.txt").write_text("no image")
    data = load(config(tmp_path))
    assert [(path.parent.name, path.stem, label) for path, label in data.train.files][:4] == [
        ("a", "01", 0),
        ("a", "02", 0),
        ("a", "10", 0),
        ("b", "01", 1),
    ]
    assert (data.classes, len(data.train), len(data.test), data.input_shape) == (3, 9, 3, (3, 8, 8))


def test_without_a_split_every_fifth_image_of_a_class_is_for_testing(tmp_path):
    for name, count in (("a", 11), ("b", 4), ("c", 5)):
        for number in range(count):
            picture(tmp_path / name / f"{number:02d}.png", number)
    data = load(config(tmp_path))
    tested = [(path.parent.name, path.stem) for path, _ in data.test.files]
    assert tested == [("a", "04"), ("a", "09"), ("c", "04")] and len(data.train) == 17


def test_pixels_are_rgb_in_about_unit_scale(tmp_path):
    colours = np.zeros((8, 8, 3), np.uint8)
    colours[2, 5] = (255, 0, 51)
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.png", colours)
    image, label = load(config(tmp_path)).train[0]
    assert image.dtype == torch.float32 and image.is_contiguous() and label.dtype == torch.int64
    assert torch.allclose(image[:, 2, 5], torch.tensor([2.0, -2.0, -1.2]))


def test_sizes_that_differ_are_refused_or_resized(tmp_path):
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.png", 100, size=(8 + number, 12))
    with pytest.raises(Refusal, match=r"\d\.png: is \d+x12, the first image is 8x12; set dataset\.size"):
        place(load(config(tmp_path)), torch.device("cpu"))
    data = place(load(config(tmp_path, size=10)), torch.device("cpu"))
    assert data.train.tensors[0].shape == (4, 3, 10, 10) and data.input_shape == (3, 10, 10)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp"])
def test_a_damaged_image_is_named(tmp_path, suffix):
    noise = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.{suffix}", noise)
    cut_in_half(tmp_path / "a" / f"2.{suffix}")
    with pytest.raises(Refusal, match=rf"2\.{suffix}: cannot be read .*delete it"):
        place(load(config(tmp_path)), torch.device("cpu"))


def test_a_file_that_only_looks_like_an_image_is_named(tmp_path):
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.png", 0)
    (tmp_path / "a" / "0.png").write_text("<html>404</html>")
    with pytest.raises(Refusal, match=r"0\.png: cannot be read"):
        load(config(tmp_path))


def test_sixteen_bits_are_refused(tmp_path):
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.png", np.full((8, 8), 1000, np.uint16))
    with pytest.raises(Refusal, match="more than 8 bits"):
        load(config(tmp_path)).train[0]


def test_a_class_that_is_only_tested_is_refused(tmp_path):
    picture(tmp_path / "train" / "a" / "0.png", 0)
    picture(tmp_path / "test" / "b" / "0.png", 0)
    with pytest.raises(Refusal, match="test/ has the class b, train/ has not"):
        load(config(tmp_path))


def test_too_few_images_for_a_test_set_are_refused(tmp_path):
    picture(tmp_path / "a" / "0.png", 0)
    with pytest.raises(Refusal, match="1 training and 0 test images"):
        load(config(tmp_path))


def test_real_photographs_are_about_unit_scale(tmp_path):
    script = real_data("expand_cifar.py")
    real_data("cifar10_jpeg_30k.npz")
    subprocess.run([sys.executable, script, tmp_path, "--train", "5", "--test", "2"], check=True, capture_output=True)
    data = place(load(config(tmp_path)), torch.device("cpu"))
    inputs, targets = data.train.tensors
    assert (inputs.shape, data.classes, len(data.test)) == ((50, 3, 32, 32), 10, 20)
    assert targets.tolist() == sorted(list(range(10)) * 5)
    assert abs(inputs.mean()) < 0.5 and 0.7 < inputs.std() < 1.3
