"""Recurrent networks over numbers or tokens: long short-term memory, gated recurrent units or plain tanh cells."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def lstm(
    cell: Literal["lstm", "gru", "rnn"],
    layers: int,
    hidden_size: int,
    bidirectional: bool,
    dropout: float,
    outputs: int,
    features: int | None,
    vocabulary: int | None,
    every_step: bool,
) -> nn.Module:
    """A recurrent network over `features` numbers a step, or over token ids below `vocabulary` (see `Recurrent`).

    Tokens are embedded in `hidden_size` dimensions. `dropout` is the probability between layers, so one layer has
    none. Exactly one of `features` and `vocabulary` is given, else ValueError.
    """
    if (features is None) == (vocabulary is None):
        raise ValueError(f"features={features}, vocabulary={vocabulary}: give one of the two")
    embedding = nn.Identity() if vocabulary is None else nn.Embedding(vocabulary, hidden_size)
    cells = CELLS[cell](
        features or hidden_size,
        hidden_size,
        layers,
        batch_first=True,
        dropout=dropout if layers > 1 else 0.0,
        bidirectional=bidirectional,
    )
    head = nn.Linear(hidden_size * (1 + bidirectional), outputs)
    return Recurrent(embedding, cells, head, every_step)


class Recurrent(nn.Module):
    """Sequences (B, T, features), or token ids (B, T), to (B, T, outputs) at every step or else to (B, outputs)."""

    def __init__(self, embedding: nn.Module, cells: nn.RNNBase, head: nn.Linear, every_step: bool):
        super().__init__()
        self.embedding = embedding
        self.cells = cells
        self.head = head
        self.every_step = every_step

    def forward(self, sequences: Tensor) -> Tensor:
        """The head's outputs for the state at every step, or for the state after the whole sequence."""
        states, _ = self.cells(self.embedding(sequences))
        return self.head(states if self.every_step else self._last(states))

    def _last(self, states: Tensor) -> Tensor:
        """Of states (B, T, D) the last ones: the backward direction ends at the first step."""
        if not self.cells.bidirectional:
            return states[:, -1]
        forward, backward = states.chunk(2, dim=-1)
        return torch.cat([forward[:, -1], backward[:, 0]], dim=-1)
