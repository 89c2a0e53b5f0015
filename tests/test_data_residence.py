"""What is put on the device, and how."""

import pytest
import torch
from data_files import settings
from torch.utils.data import Dataset

from runner.data import Data, load
from runner.data import residence as residence_module
from runner.data.residence import Resident, place

CPU = torch.device("cpu")


class Squares(Dataset):
    """Items as users write them: an array and a plain number."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        torch.rand(1)
        return torch.full((2, 3), float(index)), index * index


def squares(resident):
    return Data("sequence", Squares(), Squares(), (2, 3), 17, resident)


def test_items_become_two_tensors_in_their_order():
    inputs, targets = place(squares(True), CPU).train.tensors
    assert targets.tolist() == [0, 1, 4, 9, 16] and targets.dtype == torch.int64
    assert inputs[:, 0, 0].tolist() == [0, 1, 2, 3, 4] and inputs.shape == (5, 2, 3)


def test_what_is_small_is_placed_and_what_is_large_is_not(monkeypatch):
    assert isinstance(place(squares(None), CPU).train, Resident)
    size = 10 * (2 * 3 * 4 + 8)
    for limit, placed in ((size, True), (size - 1, False)):
        monkeypatch.setattr(residence_module, "LIMIT", limit)
        assert isinstance(place(squares(None), CPU).train, Resident) is placed
    assert isinstance(place(squares(True), CPU).train, Resident)


def test_each_part_is_placed():
    data = load(settings("synthetic", "sequence", items=6, test_items=2, lengths=[3, 5]))
    parts = place(data, CPU).train.datasets
    assert all(isinstance(part, Resident) for part in parts)
    assert [tuple(part.tensors[0].shape) for part in parts] == [(3, 3, 3), (3, 5, 3)]


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    place(squares(True), CPU)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_items_lie_on_the_gpu():
    data = place(load(settings("digits", "image")), torch.device("cuda"))
    assert all(tensor.is_cuda for tensor in (*data.train.tensors, *data.test.tensors))
