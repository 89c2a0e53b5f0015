"""Folders of images with masks, made here and real."""

import zipfile

import numpy as np
import pytest
import torch
from data_files import cut_in_half, picture, real_data, settings
from PIL import Image

from runner.data import load
from runner.data.data import BySize
from runner.data.residence import place
from runner.errors import Refusal

CPU = torch.device("cpu")


def config(root, **changes):
    return settings("mask_folder", "mask", root=str(root), **changes)


def write(root, count=5, shape=(8, 12), values=(0, 100, 255), channels=()):
    random = np.random.default_rng(0)
    for number in range(count):
        picture(root / "images" / f"{number:02d}.png", random.integers(256, size=(*shape, *channels), dtype=np.uint8))
        picture(root / "masks" / f"{number:02d}.png", random.choice(np.array(values, np.uint8), size=shape))
    return root


def test_grey_values_become_classes_in_rising_order(tmp_path):
    write(tmp_path)
    mask = np.full((8, 12), 100, np.uint8)
    mask[3, 7] = 255
    picture(tmp_path / "masks" / "00.png", mask)
    data = load(config(tmp_path))
    image, target = data.train[0]
    assert (data.classes, data.input_shape, len(data.train), len(data.test)) == (3, (1, 8, 12), 4, 1)
    assert (image.shape, image.dtype, target.dtype) == ((1, 8, 12), torch.float32, torch.int64)
    assert target[3, 7] == 2 and target.sum() == 8 * 12 + 1


def test_a_pair_is_cut_into_squares_and_the_rest_is_dropped(tmp_path):
    write(tmp_path, shape=(9, 13), channels=(3,))
    whole, cut = load(config(tmp_path)), load(config(tmp_path, size=4))
    assert cut.input_shape == (3, 4, 4) and (len(cut.train), len(cut.test)) == (4 * 6, 6)
    image, target = whole.train[1]
    piece, piece_target = cut.train[6 + 5]  # the second pair's lower right square
    assert torch.equal(piece, image[:, 4:8, 8:12]) and torch.equal(piece_target, target[4:8, 8:12])


def test_pairs_of_several_sizes_are_parts_of_one_size(tmp_path):
    write(tmp_path, shape=(8, 12))
    picture(tmp_path / "images" / "01.png", 7, size=(8, 16))
    picture(tmp_path / "masks" / "01.png", 0, size=(8, 16))
    data = load(config(tmp_path))
    assert isinstance(data.train, BySize) and [len(part) for part in data.train.datasets] == [3, 1]
    assert data.input_shape == (1, 8, None)
    assert load(config(tmp_path, size=8)).input_shape == (1, 8, 8)


def test_a_palette_and_sixteen_bits_are_classes_too(tmp_path):
    write(tmp_path, values=(0, 1))
    palette = Image.fromarray(np.full((8, 12), 2, np.uint8), mode="P")
    palette.putpalette([0, 0, 0, 200, 0, 0, 0, 200, 0])
    palette.save(tmp_path / "masks" / "00.png")
    picture(tmp_path / "masks" / "01.png", np.full((8, 12), 3000, np.uint16))
    data = load(config(tmp_path))
    assert data.train.values == (0, 1, 2, 3000) and (data.train[1][1] == 3).all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "masks" / "02.png").unlink(), "images/ has 02, masks/ has not"),
        (lambda root: (root / "images" / "02.png").unlink(), "masks/ has 02, images/ has not"),
        (lambda root: picture(root / "masks" / "02.png", 0), r"02\.png: is 8x12, its mask 8x8 pixels"),
        (lambda root: cut_in_half(root / "masks" / "02.png"), r"masks/02\.png: cannot be read .*delete it"),
        (lambda root: cut_in_half(root / "images" / "02.png"), r"images/02\.png: cannot be read .*delete it"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, damage, message):
    damage(write(tmp_path, shape=(8, 12)))
    with pytest.raises(Refusal, match=message):
        place(load(config(tmp_path)), CPU)


def test_too_large_squares_too_few_pairs_and_a_single_class_are_refused(tmp_path):
    write(tmp_path / "five")
    with pytest.raises(Refusal, match=r"dataset\.size=9: .*is 8x12 pixels; choose at most 8"):
        load(config(tmp_path / "five", size=9))
    with pytest.raises(Refusal, match="has 4 pairs"):
        load(config(write(tmp_path / "four", count=4)))
    with pytest.raises(Refusal, match="one grey value only, 9"):
        load(config(write(tmp_path / "flat", values=(9,))))


def test_real_membranes(tmp_path):
    with zipfile.ZipFile(real_data("isbi2012_membrane.zip")) as archive:
        archive.extractall(tmp_path)
    root = next(tmp_path.rglob("images")).parent
    data = place(load(config(root, size=256)), CPU)
    assert (data.classes, data.input_shape, len(data.train), len(data.test)) == (2, (1, 256, 256), 96, 24)
    images, masks = data.train.tensors
    assert masks.unique().tolist() == [0, 1] and abs(images.mean()) < 1 and 0.3 < images.std() < 1.5
    assert images[:, 0][masks == 0].mean() < images[:, 0][masks == 1].mean()  # membranes are dark
