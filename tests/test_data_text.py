"""Text files, made here and real."""

import pytest
import torch
from data_files import real_data, settings

from runner.data import load
from runner.errors import Refusal


def config(path, **changes):
    return settings("text", "next", path=str(path), **changes)


def test_pieces_follow_each_other_and_targets_are_one_ahead(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("abcdé" * 10, encoding="utf-8")
    data = load(config(path, length=4))
    inputs, targets = data.train.tensors
    assert (data.classes, data.input_shape, len(data.train), len(data.test)) == (5, (4,), 11, 1)
    assert inputs[:2].tolist() == [[0, 1, 2, 3], [4, 0, 1, 2]] and targets[0].tolist() == [1, 2, 3, 4]
    assert torch.equal(inputs.flatten()[1:], targets.flatten()[:-1])
    assert inputs.dtype == targets.dtype == torch.int64


def test_the_last_tenth_is_for_testing_only(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a" * 90 + "b" * 10)
    data = load(config(path, length=9))
    assert data.train.tensors[1].max() == 0 and data.test.tensors[0].min() == 1


def test_too_long_pieces_are_refused_with_the_longest_possible(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x" * 100)
    assert len(load(config(path, length=9)).test) == 1
    with pytest.raises(Refusal, match=r"dataset\.length=10: .*has 100 characters; choose at most 9"):
        load(config(path, length=10))


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"abc\xff\xfe")
    with pytest.raises(Refusal, match=r"no UTF-8 text .* at byte 3"):
        load(config(path))


def test_shakespeare():
    data = load(config(real_data("tinyshakespeare.txt")))
    assert (data.classes, data.input_shape) == (65, (128,))
    assert 7800 < len(data.train) < 7900 and 860 < len(data.test) < 880
