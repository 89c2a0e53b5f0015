"""Batches: properties of the order, whatever way the items come, and what must stay undisturbed."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from data_files import picture, settings
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as some
from torch.utils.data import Dataset, TensorDataset

from runner.data import Data, load
from runner.data.batches import steps_per_epoch, test_batches, train_batches
from runner.data.data import BySize
from runner.data.residence import place
from runner.errors import Refusal

CPU = torch.device("cpu")


def numbered(*sizes, resident=True, workers=0, augment=False):
    """Items that are told apart by their target; each part has inputs of a width of its own."""
    parts, start = [], 0
    for width, size in enumerate(sizes, start=4):
        targets = torch.arange(start, start + size)
        inputs = torch.randn(size, 1, 6, width, generator=torch.Generator().manual_seed(size))
        parts.append(TensorDataset(inputs, targets))
        start += size
    whole = BySize.of(parts)
    return place(Data("image", whole, whole, (1, 6, None), start, resident, workers, augment), CPU)


def train(data, batch_size, steps, order=1, augment=2):
    return list(train_batches(data, batch_size, steps, CPU, order, augment))


def equal(some_batches, others):
    assert len(some_batches) == len(others)
    pairs = zip(some_batches, others, strict=True)
    return all(torch.equal(a, b) for one, two in pairs for a, b in zip(one, two, strict=True))


sizes = some.lists(some.integers(1, 25), min_size=1, max_size=3)


@given(sizes, some.integers(1, 8), some.integers(0, 2**63 - 1))
def test_an_epoch_has_each_item_at_most_once_in_whole_batches(sizes, batch_size, seed):
    batch_size = min(batch_size, *sizes)
    data = numbered(*sizes)
    steps = steps_per_epoch(data, batch_size)
    batches = train(data, batch_size, 2 * steps, order=seed)
    assert all(len(inputs) == len(targets) == batch_size for inputs, targets in batches)
    for epoch in (batches[:steps], batches[steps:]):
        seen = torch.cat([targets for _, targets in epoch]).tolist()
        assert len(set(seen)) == len(seen) == sum(size // batch_size * batch_size for size in sizes)


@given(sizes, some.integers(1, 8), some.integers(1, 30), some.integers(0, 2**63 - 1))
def test_the_order_is_the_same_resident_and_streamed(sizes, batch_size, steps, seed):
    batch_size = min(batch_size, *sizes)
    resident, streamed = (numbered(*sizes, resident=resident, augment=True) for resident in (True, False))
    assert equal(train(resident, batch_size, steps, order=seed), train(streamed, batch_size, steps, order=seed))


@effort(max_examples=4, deadline=None)
@given(some.integers(1, 3), some.integers(0, 2**63 - 1))
def test_the_order_is_the_same_with_any_number_of_workers(workers, seed):
    one, many = numbered(13, 9, augment=True), numbered(13, 9, resident=False, workers=workers, augment=True)
    assert equal(train(one, 4, 11, order=seed), train(many, 4, 11, order=seed))
    assert equal(list(test_batches(one, 4, CPU)), list(test_batches(many, 4, CPU)))


def test_epochs_and_seeds_differ_and_a_seed_repeats():
    data = numbered(60)
    batches = train(data, 20, 6)
    first, second = (torch.cat([targets for _, targets in epoch]) for epoch in (batches[:3], batches[3:]))
    assert not torch.equal(first, second) and torch.equal(first.sort().values, second.sort().values)
    assert equal(train(data, 20, 6), train(data, 20, 6))
    assert not equal(train(data, 20, 6), train(data, 20, 6, order=3))


def test_neither_order_nor_augmentation_depends_on_the_global_generators():
    data = numbered(30, resident=False, augment=True)
    torch.manual_seed(1)
    before = train(data, 10, 5)
    torch.manual_seed(2), random.seed(2), np.random.seed(2)
    assert equal(before, train(data, 10, 5))


def test_sizes_take_turns_and_never_mix():
    data = load(settings("synthetic", "image", items=24, test_items=6, sizes=[8, 12, 16]))
    widths = [inputs.shape[-1] for inputs, _ in train(place(data, CPU), 2, 13)]
    assert widths == [8, 12, 16] * 4 + [8]


def test_augmentation_differs_between_epochs_and_follows_its_seed():
    data = numbered(8, augment=True)
    plain = {
        int(target): item
        for inputs, targets in train(numbered(8), 8, 1)
        for item, target in zip(inputs, targets, strict=True)
    }
    batches = train(data, 8, 4)
    epochs = [{int(target): item for item, target in zip(*batch, strict=True)} for batch in batches]
    assert any(not torch.equal(epochs[0][key], epochs[1][key]) for key in plain)
    assert any(not torch.equal(epochs[0][key], plain[key]) for key in plain)
    other = train(data, 8, 4, augment=3)
    assert not equal(batches, other)
    assert all(torch.equal(one[1], two[1]) for one, two in zip(batches, other, strict=True))


def test_test_batches_keep_order_and_the_last_small_batch_and_are_never_augmented():
    data = numbered(10, augment=True)
    for _ in range(2):
        batches = list(test_batches(data, 4, CPU))
        assert [targets.tolist() for _, targets in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert torch.equal(torch.cat([inputs for inputs, _ in batches]), data.test.tensors[0])


def test_a_batch_larger_than_the_training_set_is_refused_at_once():
    data = load(settings("digits", "image"))
    message = r"train\.batch_size=5000: the training set has 1438 items; choose at most 1438"
    with pytest.raises(Refusal, match=message):
        steps_per_epoch(data, 5000)
    with pytest.raises(Refusal, match=message):
        train_batches(data, 5000, 1, CPU, 0, 0)
    assert steps_per_epoch(data, 1438) == 1 and steps_per_epoch(data, 719) == 2
    with pytest.raises(Refusal, match="has 3 items of one input shape; choose at most 3"):
        steps_per_epoch(numbered(9, 3), 4)


class Noisy(Dataset):
    """A user's items, drawn anew from all three global generators each time."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.tensor([torch.rand(1).item(), np.random.rand(), random.random()]), index


def noise(workers, seed=2, steps=8):
    data = Data("sequence", Noisy(), Noisy(), (3,), 16, False, workers)
    return torch.stack([inputs for inputs, _ in train(data, 4, steps, augment=seed)])


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_users_items_draw_repeats_and_follows_the_augmentation_seed(workers):
    torch.manual_seed(1)
    drawn = noise(workers)
    torch.manual_seed(2), random.seed(2), np.random.seed(2)
    assert torch.equal(drawn, noise(workers))
    other = noise(workers, seed=3)
    for generator in range(3):
        assert len(drawn[..., generator].unique()) == 32, "workers or epochs draw the same numbers"
        assert not set(drawn[..., generator].flatten().tolist()) & set(other[..., generator].flatten().tolist())


@pytest.mark.parametrize("workers", [0, 2])
def test_neither_training_items_nor_evaluation_disturb_the_global_generators(workers):
    def states():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    data = Data("sequence", Noisy(), Noisy(), (3,), 16, False, workers)
    before = states()
    batches = train_batches(data, 4, 4, CPU, 1, 2)
    first = [next(batches) for _ in range(2)]
    evaluated = [list(test_batches(data, 5, CPU)) for _ in range(2)]
    rest = list(batches)
    assert states() == before
    assert equal(first + rest, train(data, 4, 4)) and equal(*evaluated)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_file_met_while_streaming_is_told_in_one_line(tmp_path, workers):
    for number in range(5):
        picture(tmp_path / "a" / f"{number}.png", number)
    (tmp_path / "a" / "1.png").write_text("no image")
    data = load(settings("image_folder", "image", root=str(tmp_path), resident=False, workers=workers))
    with pytest.raises(Refusal, match=r"^\S*1\.png: cannot be read [^\n]*$"):
        train(place(data, CPU), 4, 1)


def test_placing_is_left_to_the_data_where_they_are_not_asked_for():
    data = replace(load(settings("digits", "image")), resident=False)
    assert place(data, CPU) is data
