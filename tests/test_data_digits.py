"""The digits in their three views."""

import pytest
import torch
from data_files import settings

from runner.data import load


def test_images_are_split_by_every_fifth_and_about_unit_scale():
    data = load(settings("digits", "image"))
    inputs, targets = data.train.tensors
    assert (len(data.train), len(data.test), data.classes) == (1438, 359, 10)
    assert data.input_shape == tuple(inputs.shape[1:]) == (1, 8, 8)
    assert (inputs.dtype, targets.dtype, targets.shape) == (torch.float32, torch.int64, (1438,))
    assert abs(inputs.mean()) < 0.02 and abs(inputs.std() - 1) < 0.02


def test_images_are_enlarged_smoothly_and_masks_without_new_classes():
    small, large = load(settings("digits", "mask")), load(settings("digits", "mask", size=32))
    assert large.input_shape == (1, 32, 32) and large.train.tensors[1].shape == (1438, 32, 32)
    assert large.train.tensors[1].unique().tolist() == list(range(11))
    assert torch.equal(large.train.tensors[1][:, ::4, ::4], small.train.tensors[1])
    assert len(large.train.tensors[0].unique()) > len(small.train.tensors[0].unique()) == 17


def test_a_mask_shows_its_digit_where_the_ink_is():
    images, masks = (load(settings("digits", "mask"))).train.tensors
    digits = load(settings("digits", "image")).train.tensors[1]
    ink = masks > 0
    assert images[:, 0][ink].min() > images[:, 0][~ink].max()
    assert torch.equal(masks.amax((1, 2)), digits + 1)


def test_a_sequence_is_the_rows_of_its_image():
    sequences, images = load(settings("digits", "sequence")), load(settings("digits", "image"))
    assert (sequences.input_shape, sequences.classes) == ((8, 8), 10)
    assert torch.equal(sequences.test.tensors[0], images.test.tensors[0][:, 0])


@pytest.mark.parametrize("view", ["image", "mask", "sequence"])
def test_two_loads_are_bitwise_equal(view):
    one, two = load(settings("digits", view, size=9)), load(settings("digits", view, size=9))
    assert all(torch.equal(a, b) for a, b in zip(one.train.tensors, two.train.tensors, strict=True))
