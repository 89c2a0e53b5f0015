"""A user's data set: what is taken, and what is said about everything else."""

import pickle
import random

import numpy as np
import pytest
import torch
from data_files import settings
from torch.utils.data import TensorDataset

from runner.data import load
from runner.data.batches import test_batches
from runner.data.custom import named
from runner.errors import Refusal

ITEM = {
    "image": ((3, 8, 8), torch.float32, (), torch.int64),
    "mask": ((3, 8, 8), torch.float32, (8, 8), torch.int64),
    "sequence": ((5, 2), torch.float32, (), torch.int64),
    "next": ((5,), torch.int64, (5,), torch.int64),
    "forecast": ((5, 2), torch.float32, (2,), torch.float32),
}


def make(view, count=6):
    shape, dtype, target_shape, target_dtype = ITEM[view]
    data = TensorDataset(torch.zeros(count, *shape).to(dtype), torch.zeros(count, *target_shape).to(target_dtype))
    return data, data


def as_numpy():
    items = [(np.zeros((3, 8, 8), np.float32), 1)] * 4
    return items, items


def noisy():
    random.random(), np.random.rand(), torch.rand(1)
    return make("image")


WRONG = {
    "nothing": lambda: None,
    "one": lambda: make("image")[0],
    "three": lambda: (*make("image"), 1),
    "numbers": lambda: (1, 2),
    "empty": lambda: ([], []),
    "no_pair": lambda: ([torch.zeros(3, 8, 8)],) * 2,
    "no_channel": lambda: ([(torch.zeros(8, 8), 0)],) * 2,
    "double": lambda: ([(np.zeros((3, 8, 8)), 0)],) * 2,
    "one_hot": lambda: ([(torch.zeros(3, 8, 8), torch.zeros(10))],) * 2,
    "strings": lambda: ([("a.png", 0)],) * 2,
    "objects": lambda: ([(object(), 0)],) * 2,
}


def wrong(kind):
    return WRONG[kind]()


def config(target, view="image", **changes):
    return settings("custom", view, _target_=f"test_data_custom.{target}", **changes)


@pytest.mark.parametrize("view", ITEM)
def test_every_view_can_be_brought(view):
    data = load(config("make", view, args={"view": view}, classes=4))
    assert (data.view, data.input_shape, data.classes, len(data.train)) == (view, ITEM[view][0], 4, 6)


def test_items_may_be_arrays_and_plain_numbers():
    assert load(config("as_numpy")).input_shape == (3, 8, 8)


def test_it_is_streamed_unless_asked_otherwise():
    residence = [load(config("as_numpy", resident=asked)).resident for asked in (None, False, True)]
    assert residence == [False, False, True]


def test_loading_leaves_the_global_generators_alone():
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    load(config("noisy"))
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


@pytest.mark.parametrize(
    ("kind", "expected", "found"),
    [
        ("nothing", "a pair", "NoneType"),
        ("one", "a pair", "TensorDataset"),
        ("three", "a pair", "TensorDataset, int"),
        ("numbers", "map-style", "int"),
        ("empty", "items", "length 0"),
        ("no_pair", "items", r"float32 \(3, 8, 8\)"),
        ("no_channel", "float32 of 3 dimensions", r"float32 \(8, 8\), int"),
        ("double", "float32 of 3 dimensions", r"float64 \(3, 8, 8\), int"),
        ("one_hot", "target int64 of 0", r"float32 \(10,\)"),
        ("strings", "float32 of 3 dimensions", "str, int"),
        ("objects", "items", "object, int"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(kind, expected, found):
    with pytest.raises(
        Refusal, match=f"_target_=test_data_custom.wrong: expected .*{expected}.*, found .*{found}"
    ) as told:
        load(config("wrong", args={"kind": kind}))
    assert "\n" not in str(told.value)


class Unmeasured:
    """A data set whose length cannot be had."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        if isinstance(self.error, BaseException):
            raise self.error
        return self.error

    def __getitem__(self, index):
        raise SystemExit("no items today")


def unmeasured(error):
    """A training set of this length, or which raises this when asked for it."""
    return Unmeasured(error), Unmeasured(3)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (-1, "its length: ValueError: __len__"),
        ("x", "its length: TypeError: 'str' object"),
        (10**30, "its length: OverflowError: "),
        (KeyError("planted"), "its length: KeyError: 'planted'"),
        (SystemExit("planted"), "its length: SystemExit: planted"),
        (3, "its first item: SystemExit: no items today"),
    ],
)
def test_what_a_data_set_raises_names_the_setting(error, said):
    with pytest.raises(Refusal) as told:
        load(config("unmeasured", args={"error": error}))
    assert str(told.value).startswith(f"dataset._target_=test_data_custom.unmeasured: {said}")


class OneBad(Unmeasured):
    """Twenty items of which one raises."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 17:
            raise self.error
        return torch.zeros(3, 8, 8), 0


def one_bad(error):
    """A test set with an item that raises this."""
    return make("image", 20)[0], OneBad(error)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [ValueError("planted\nmore"), KeyboardInterrupt("planted")])
def test_a_later_item_that_raises_is_named(error, workers):
    data = load(config("one_bad", args={"error": error}, classes=10, workers=workers))
    name = f"dataset._target_=test_data_custom.one_bad: the test set, item 17: {type(error).__name__}: planted"
    with pytest.raises(Refusal) as told:
        list(test_batches(data, 8, torch.device("cpu")))
    assert str(told.value) == name


def test_a_loaders_worker_finds_what_else_the_users_set_has():
    items = OneBad(ValueError("planted"))
    items.rate_hz = 16000
    copied = pickle.loads(pickle.dumps(named(items, "the test set")))
    assert (copied.rate_hz, len(copied)) == (16000, 20)
    with pytest.raises(AttributeError, match="no_such"):
        copied.no_such  # noqa: B018
