"""Recurrent networks: which states the head reads, what the options mean, what is refused."""

import itertools
import warnings
from typing import Any

import pytest
import torch

from runner.models.lstm import lstm

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
PAIRS = list(itertools.product(GATES, [False, True]))
SMALL = {
    "cell": "lstm",
    "layers": 2,
    "hidden_size": 5,
    "bidirectional": False,
    "dropout": 0.0,
    "outputs": 4,
    "features": 3,
    "vocabulary": None,
    "every_step": False,
}


def small(**changes: Any) -> Any:
    """A tiny network that differs from SMALL in `changes`."""
    return lstm(**(SMALL | changes))


@pytest.mark.parametrize(("cell", "bidirectional"), PAIRS)
def test_the_head_reads_the_last_state_of_each_direction(cell: str, bidirectional: bool) -> None:
    network, sequences = small(cell=cell, bidirectional=bidirectional), torch.randn(2, 7, 3)
    _, state = network.cells(sequences)
    hidden = state[0] if cell == "lstm" else state  # (layers * directions, B, hidden_size)
    last = torch.cat([hidden[-2], hidden[-1]], dim=-1) if bidirectional else hidden[-1]
    torch.testing.assert_close(network(sequences), network.head(last))


@pytest.mark.parametrize(("cell", "bidirectional"), PAIRS)
def test_parameters_counted_by_hand(cell: str, bidirectional: bool) -> None:
    directions = 1 + bidirectional
    layers = sum(GATES[cell] * (wide * 5 + 5 * 5 + 2 * 5) * directions for wide in (3, 5 * directions))
    network = small(cell=cell, bidirectional=bidirectional)
    assert sum(parameter.numel() for parameter in network.parameters()) == layers + 5 * directions * 4 + 4


def test_shapes_of_numbers_and_tokens() -> None:
    numbers, tokens = torch.randn(2, 7, 3), torch.randint(11, (2, 7))
    assert small(every_step=True)(numbers).shape == (2, 7, 4)
    assert small(features=None, vocabulary=11)(tokens).shape == (2, 4)
    assert small(features=None, vocabulary=11, every_step=True)(tokens).shape == (2, 7, 4)


def test_one_direction_never_sees_later_tokens() -> None:
    network, tokens = small(features=None, vocabulary=11, every_step=True), torch.randint(10, (2, 7))
    changed = tokens.clone()
    changed[:, 4] = 10
    same = (network(tokens) == network(changed)).all(dim=-1)
    assert same[:, :4].all() and not same[:, 4:].any()


@pytest.mark.parametrize(("cell", "bidirectional"), PAIRS)
def test_gradient_reaches_every_parameter(cell: str, bidirectional: bool) -> None:
    network = small(cell=cell, bidirectional=bidirectional, features=None, vocabulary=3)
    network(torch.tensor([[0, 1, 2, 0]])).square().sum().backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


def test_dropout_lies_between_layers_only() -> None:
    sequences = torch.randn(2, 7, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_layer = small(layers=1, dropout=0.5)
    assert torch.equal(one_layer(sequences), one_layer(sequences))
    two_layers = small(layers=2, dropout=0.5)
    assert not torch.equal(two_layers(sequences), two_layers(sequences))


@pytest.mark.parametrize("features", [None, 3])
def test_refuses_both_or_neither_kind_of_input(features: int | None) -> None:
    with pytest.raises(ValueError, match="one of the two"):
        small(features=features, vocabulary=features)
