"""Made-up data: always the same, and learnable."""

import hashlib
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from data_files import settings

from runner.data import load
from runner.errors import Refusal

VIEWS = {
    "image": ((3, 16, 16), ()),
    "mask": ((3, 16, 16), (16, 16)),
    "sequence": ((12, 3), ()),
    "next": ((12,), (12,)),
    "forecast": ((12, 3), (3,)),
}


def small(view, **changes):
    return settings("synthetic", view, **{"items": 64, "test_items": 32, "size": 16, "length": 12, **changes})


def digest(data):
    tensors = [*data.train.tensors, *data.test.tensors]
    return hashlib.sha256(b"".join(tensor.contiguous().numpy().tobytes() for tensor in tensors)).hexdigest()


@pytest.mark.parametrize("view", VIEWS)
def test_shapes_and_types(view):
    data = load(small(view))
    inputs, targets = data.train.tensors
    assert (tuple(inputs.shape), tuple(targets.shape)) == tuple((64, *shape) for shape in VIEWS[view])
    assert data.input_shape == VIEWS[view][0] and len(data.test) == 32
    assert inputs.dtype == (torch.int64 if view == "next" else torch.float32)
    assert targets.dtype == (torch.float32 if view == "forecast" else torch.int64)
    assert data.classes == (3 if view == "forecast" else 10)
    if view != "forecast":
        assert targets.min() >= 0 and targets.max() < 10


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_whatever_the_global_generators_hold(view):
    digests = set()
    for seed in (1, 2):
        random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
        digests.add(digest(load(small(view))))
    assert len(digests) == 1


def test_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from test_data_synthetic import *; "
        "print([digest(load(small(view))) for view in VIEWS])"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == str([digest(load(small(view))) for view in VIEWS])


def test_classes_that_do_not_occur_cost_no_memory():
    tracemalloc.start()
    load(small("image", items=8, test_items=4, classes=1000, size=64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * 3 * 64 * 64 * 4 / 10  # a tenth of a picture of each class


def test_training_and_test_items_differ():
    data = load(small("image"))
    assert not torch.equal(data.train.tensors[0][:32], data.test.tensors[0])


def nearest_class(data):
    """Accuracy on the test set of the class whose mean over the training set is nearest."""
    (inputs, targets), (unseen, answers) = data.train.tensors, data.test.tensors
    means = torch.stack([inputs[targets == label].mean(0) for label in range(data.classes)])
    return (torch.cdist(unseen.flatten(1), means.flatten(1)).argmin(1) == answers).float().mean()


@pytest.mark.parametrize("view", ["image", "sequence"])
def test_classes_can_be_learned(view):
    assert nearest_class(load(small(view, items=1000, test_items=200))) > 0.6


def test_masks_can_be_learned_from_each_pixel():
    data = load(small("mask", channels=3, classes=4))
    (inputs, targets), (unseen, answers) = data.train.tensors, data.test.tensors
    pixels = inputs.movedim(1, -1)
    colours = torch.stack([pixels[targets == label].mean(0) for label in range(4)])
    guesses = torch.cdist(unseen.movedim(1, -1).reshape(-1, 3), colours).argmin(1)
    assert (guesses == answers.flatten()).float().mean() > 0.6


def test_the_next_symbol_mostly_follows_from_the_last():
    inputs, targets = load(small("next", items=256)).train.tensors
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    follower = torch.stack([targets[inputs == symbol].mode().values for symbol in range(10)])
    assert 0.75 < (follower[inputs] == targets).float().mean() < 0.9


def test_a_wave_continues():
    (inputs, targets), (unseen, answers) = (part.tensors for part in (load(small("forecast", items=500)).train,) * 2)
    weights = torch.linalg.lstsq(inputs.flatten(1), targets).solution
    error = (unseen.flatten(1) @ weights - answers).square().mean()
    assert error < 0.2 * answers.var()


def test_each_size_is_a_part_and_the_shape_says_what_varies():
    data = load(small("mask", sizes=[8, 16, 24], items=10))
    assert data.input_shape == (3, None, None)
    assert [tuple(part.tensors[0].shape) for part in data.train.datasets] == [
        (4, 3, 8, 8),
        (3, 3, 16, 16),
        (3, 3, 24, 24),
    ]
    assert load(small("sequence", lengths=[5, 9])).input_shape == (None, 3)


def test_fewer_items_than_sizes_are_refused():
    with pytest.raises(Refusal, match=r"dataset\.items=2: dataset\.sizes needs at least one each, 3"):
        load(small("image", sizes=[8, 16, 24], items=2))
