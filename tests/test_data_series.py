"""Tables of numbers."""

import numpy as np
import pytest
import torch
from data_files import settings

from runner.data import load
from runner.errors import Refusal


def config(path, **changes):
    return settings("series", "forecast", path=str(path), **{"length": 3, **changes})


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    lines = [f"2026-01-{row % 28 + 1:02d},{row},{row % 2},7" for row in range(50)]
    path.write_text("\n".join(["day,count,parity,constant", *lines]))
    return path


def test_windows_predict_the_next_row(table):
    data = load(config(table))
    inputs, targets = data.train.tensors
    assert (data.classes, data.input_shape) == (3, (3, 3))
    assert (inputs.shape, targets.shape, len(data.test)) == ((37, 3, 3), (37, 3), 7)
    assert torch.equal(inputs[1:, -1], targets[:-1]) and torch.equal(inputs[0, 1:], inputs[1, :-1])
    assert inputs.dtype == targets.dtype == torch.float32


def test_columns_are_standardised_by_the_training_rows(table):
    data = load(config(table, columns=["count"]))
    rows = np.concatenate([part.tensors[1].numpy() for part in (data.train, data.test)])[:, 0]
    counts = np.r_[3:40, 43:50]
    assert np.allclose(rows, (counts - np.arange(40).mean()) / np.arange(40).std(), atol=1e-5)


def test_a_constant_column_stays_finite(table):
    assert (load(config(table, columns=["constant"])).train.tensors[0] == 0).all()


def test_columns_come_in_the_order_asked_for(table):
    both = load(config(table, columns=["parity", "count"])).train.tensors[1]
    assert torch.equal(both.flip(1), load(config(table, columns=["count", "parity"])).train.tensors[1])


@pytest.mark.parametrize("column", ["day", "nothing"])
def test_columns_that_are_not_numeric_or_not_there_are_refused(table, column):
    with pytest.raises(Refusal, match=rf"dataset\.columns={column}: numeric in .* are count, parity, constant"):
        load(config(table, columns=["count", column]))


def test_too_long_windows_are_refused_with_the_longest_possible(table):
    assert len(load(config(table, length=9)).test) == 1
    with pytest.raises(Refusal, match=r"dataset\.length=10: .*has 50 rows; choose at most 9"):
        load(config(table, length=10))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,\n", "data row 2, column b"),
        ("a\n1\ninf\n", "data row 2, column a"),
        ("a\nx\ny\n", "no numeric column"),
        ("a,b\n1,2\n3,4,5,6\n", "no CSV file"),
    ],
)
def test_gaps_and_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_text(content)
    with pytest.raises(Refusal, match=message):
        load(config(path))
