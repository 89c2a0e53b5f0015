"""The ladder in one sentence: how far down trials are equal, and what parts them."""

from dataclasses import replace
from typing import Any

import pytest
from made_traces import Machine, training, trainings

from runner.analysis.divergence import Divergence
from runner.analysis.ladder import sentence
from runner.analysis.traces import compare
from runner.operation import Operation, Repeated

EQUAL = Divergence(
    subject="weights",
    trials=3,
    interpreters=1,
    verdict="bitwise",
    unique_weights=1,
    seeds_varied=[],
    same_start=True,
    first_data_step=None,
    first_loss_step=None,
    weights_equal_after=None,
    weights_differ_after=None,
    same_evaluation=True,
)
DIFFERS = replace(
    EQUAL, verdict="differs", unique_weights=3, first_loss_step=3, weights_equal_after=1, weights_differ_after=2
)
ABOVE = (
    "same start, same data, first loss difference at step 3, weights equal after step 1, differ after step 2, "
    "same evaluation"
)


def test_without_a_probe_the_ladder_ends_at_the_weights() -> None:
    assert sentence(DIFFERS, None) == ABOVE


def test_the_first_operation_that_differs_is_named_with_its_place() -> None:
    compared = compare(trainings(3, repeat=True, unsteady=["convolution_backward in conv"]))
    assert sentence(DIFFERS, compared) == (
        f"{ABOVE}; the first operation that differs: aten.convolution_backward of conv (backward, step 1, net.py:7), "
        "differs when repeated"
    )


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (
            {"noise": ["mm in head at 2"]},
            "the first operation that differs: aten.mm of head (backward, step 2, net.py:7)",
        ),
        ({"noise": ["mm in head"], "repeat": True}, "differs between processes"),
    ],
)
def test_what_repeating_showed_is_said_where_it_was_asked(planted: dict[str, Any], words: str) -> None:
    assert sentence(DIFFERS, compare(trainings(**planted))).endswith(words)


def test_another_seed_is_named_as_random_numbers() -> None:
    traces = [training(Machine(number, generator=f"seed {number}")).trace() for number in range(2)]
    assert sentence(DIFFERS, compare(traces)).endswith(
        "; the first random numbers that differ: aten.native_dropout of drop (forward, step 1, net.py:7)"
    )


def test_trials_that_part_are_named() -> None:
    traces = trainings()
    traces[1] = replace(traces[1], operations=traces[1].operations[:15])
    assert "; trial 1 ends where trial 0 does aten.relu" in sentence(DIFFERS, compare(traces))


def test_data_that_differ_are_the_answer_and_nothing_is_blamed_on_operations() -> None:
    traces = [training(Machine(number), data=["first", f"second {number}"]).trace() for number in range(2)]
    differs = replace(DIFFERS, first_data_step=2)
    words = sentence(differs, compare(traces, data_step=2))
    assert "data differ first at step 2" in words
    assert words.endswith("; no operation differs before the data do")


def test_where_nothing_is_found_that_is_said_with_how_much_was_looked_at() -> None:
    assert sentence(DIFFERS, compare(trainings())).endswith(
        "; no operation differs on equal inputs among the 26 traced"
    )
    modules = [replace(trace, level="modules") for trace in trainings()]
    assert sentence(DIFFERS, compare(modules)).endswith("; no module differs on equal inputs among the 26 traced")


@pytest.mark.parametrize("verdict", ["bitwise", "single", None])
def test_equal_trials_are_not_looked_into(verdict: Any) -> None:
    same = replace(EQUAL, verdict=verdict)
    assert sentence(same, compare(trainings())) == same.sentence


def test_an_operation_that_does_not_repeat_is_named_in_equal_trials_too() -> None:
    traces = [training(Machine(0, repeat=True, unsteady=["mm in head"])).trace(number=number) for number in range(2)]
    assert sentence(EQUAL, compare(traces)).endswith(
        "; operation that does not repeat: aten.mm of head (backward, step 1, net.py:7), differs when repeated"
    )


def test_what_parts_trials_comes_before_what_does_not_repeat() -> None:
    """The convolution agreed by chance, the loss is what made the trials differ."""
    machines = [Machine(number, repeat=True, noise=["mm in head"]) for number in range(2)]
    traces = [training(machine).trace() for machine in machines]
    unsteady = [_unsteady(trace.operations[0]) for trace in traces]
    traces = [
        replace(one, operations=(first, *one.operations[1:])) for one, first in zip(traces, unsteady, strict=True)
    ]
    compared = compare(traces)
    assert [one.name for one in compared.findings] == ["aten.convolution", "aten.mm"]
    assert "; the first operation that differs: aten.mm" in sentence(DIFFERS, compared)


def _unsteady(operation: Operation) -> Operation:
    return replace(operation, repeated=Repeated(False, 1, 1e-7))


def test_a_single_trace_is_no_comparison() -> None:
    assert sentence(DIFFERS, compare(trainings(1))) == ABOVE
