"""Calls of operations: arguments as text, what is written, which outputs mean something."""

from typing import Any

import pytest
import torch

from runner.worker.call import Call, as_text
from runner.worker.signature import signature

aten = torch.ops.aten


def call_of(func: Any, *args: Any, **kwargs: Any) -> Call:
    return Call.of(signature(func), args, kwargs)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.device("cuda", 1), "cuda"),  # trials may run on different cards
        ({"scale": 0.5, "words": ["a", None]}, "{scale: 0.5, words: ['a', None]}"),
        ([torch.ones(1), torch.ones(1)], "[2 tensors]"),
        ([torch.ones(1), None], "[1 tensors, None]"),
        ((torch.float32, torch.strided, torch.channels_last), "[torch.float32, torch.strided, torch.channels_last]"),
        (torch.Generator(), "Generator"),
    ],
)
def test_arguments_are_the_same_text_in_every_process(value: Any, text: str) -> None:
    assert as_text(value, lambda found: f"{len(found)} tensors") == text


def test_tensors_stand_by_their_places_and_names_in_their_order() -> None:
    one, other = torch.ones(2), torch.ones(2)
    call = call_of(aten.add.out, one, other, out=one, alpha=2)
    assert call.scalars == "self=#0, other=#1, alpha=2, out=#2"
    assert (call.writes, call.overwrites) == ([2], [2])
    assert call.outputs(one) == [one], "what it wrote and returned counts once"


def test_scratch_is_an_output_and_no_result() -> None:
    weight, index = torch.ones(3, 2), torch.tensor([0, 1])
    returned = aten._embedding_bag.default(weight, index, torch.tensor([0]))
    call = call_of(aten._embedding_bag.default, weight, index, torch.tensor([0]))
    assert [id(one) for one in call.outputs(returned)] == [id(one) for one in returned]
    assert [id(one) for one in call.results(returned)] == [id(returned[0])]


def test_the_state_of_cudnns_dropout_is_scratch_and_its_seed_is_compared() -> None:
    form = signature(aten._cudnn_init_dropout_state.default)
    assert form.scratch == (0,)
    assert "dropout_seed" in [one.name for one in form.arguments]
    call, state = call_of(aten._cudnn_init_dropout_state.default, 0.1, True, 7), torch.ones(8, dtype=torch.uint8)
    assert "dropout_seed=7" in call.scalars
    assert (call.outputs(state), call.results(state)) == ([state], [])  # one tensor alone, no tuple


def test_statistics_that_a_kernel_changes_silently_are_results() -> None:
    inputs, mean, variance = torch.randn(4, 2), torch.zeros(2), torch.ones(2)
    args = inputs, None, None, mean, variance, True, 0.1, 1e-5
    results = call_of(aten.native_batch_norm.default, *args).results(aten.native_batch_norm.default(*args))
    assert [id(one) for one in results[3:]] == [id(mean), id(variance)]
