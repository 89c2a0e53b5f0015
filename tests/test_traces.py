"""Comparing traces: what is planted in one operation is found there, and nothing else is."""

from dataclasses import replace
from typing import Any

import pytest
from made_traces import Machine, Memory, bits, only, stepped, told, training, trainings

from runner.analysis.traces import Compared, compare
from runner.operation import Operation, Value

PLANTED = [
    "convolution in conv",
    "native_batch_norm in norm",
    "relu in norm",
    "native_dropout in drop",
    "addmm in head",
    "nll_loss2d_forward in ",
    "nll_loss2d_backward in ",
    "mm in head",
    "native_dropout_backward in drop",
    "convolution_backward in conv",
    "add_ in head",
]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_trials_have_nothing_to_tell(n: int) -> None:
    compared = compare(trainings(n, repeat=True))
    assert compared.findings == []
    assert (compared.trials, compared.operations) == (n, 2 * 13)


@pytest.mark.parametrize("place", PLANTED)
@pytest.mark.parametrize("step", [1, 2])
def test_noise_in_one_operation_is_found_there_and_nowhere_else(place: str, step: int) -> None:
    name, _, module = place.partition(" in ")
    found = only(compare(trainings(3, noise=[f"{place} at {step}"])))
    assert (found.rung, found.name, found.module, found.step) == ("operation", f"aten.{name}", module, step)
    assert (found.trials, found.distinct, found.repeats) == ([0, 1, 2], 3, None)


def test_every_operation_that_differs_on_equal_inputs_is_found() -> None:
    compared = compare(
        trainings(steps=1, noise=["nll_loss2d_forward in ", "mm in head", "convolution_backward in conv"])
    )
    assert [name for _, name, _, _ in told(compared)] == ["nll_loss2d_forward", "mm", "convolution_backward"]


def test_the_same_operation_in_later_steps_is_one_finding() -> None:
    found = only(compare(trainings(steps=3, noise=["nll_loss2d_forward in "])))
    assert (found.step, found.count) == (1, 3)
    assert found.words == (
        "aten.nll_loss2d_forward (forward, step 1, net.py:7): equal inputs, 2 different results of 2; "
        "3 times in the steps traced"
    )


def test_only_trials_with_equal_inputs_are_compared() -> None:
    """Trial 2 had another input by then, for a reason that was told."""
    machines = [Machine(number, noise=["addmm in head"] if number < 2 else []) for number in range(3)]
    machines[2].noise = ["relu in norm"]
    first, second = compare([training(machine, 1).trace() for machine in machines]).findings
    assert (first.name, first.trials, first.distinct) == ("aten.relu", [0, 1, 2], 2)
    assert (second.name, second.trials) == ("aten.addmm", [0, 1])


def test_repeating_tells_operations_from_processes() -> None:
    assert only(compare(trainings(repeat=True, noise=["relu in norm at 2"]))).repeats == "differs between processes"
    found = only(compare(trainings(repeat=True, unsteady=["convolution_backward in conv at 2"])))
    assert (found.repeats, found.max_ulp, found.max_relative) == ("differs when repeated", 3, 2e-7)
    assert found.words.endswith("2 different results of 2, differs when repeated")


def test_what_does_not_repeat_is_found_behind_another_difference_too() -> None:
    planted = {"noise": ["convolution in conv"], "unsteady": ["addmm in head"]}
    first, second = compare(trainings(steps=1, repeat=True, **planted)).findings
    assert (first.name, second.name) == ("aten.convolution", "aten.addmm")
    assert (second.repeats, second.distinct) == ("differs when repeated", 1)


def test_what_does_not_repeat_is_found_in_trials_that_agree() -> None:
    """Two trials drew the same result by chance; within the process it did not come again."""
    traces = [training(Machine(0, repeat=True, unsteady=["mm in head"]), 1).trace(number=number) for number in (0, 1)]
    found = only(compare(traces))
    assert (found.name, found.distinct, found.repeats) == ("aten.mm", 1, "differs when repeated")
    assert found.words.startswith("aten.mm of head (backward, step 1, net.py:7): trials agree, differs when repeated")


def test_another_seed_is_found_at_the_first_draw_and_not_again() -> None:
    found = only(compare([training(Machine(number, generator=f"seed {number}")).trace() for number in range(3)]))
    assert (found.rung, found.name, found.module, found.step) == ("random", "aten.native_dropout", "drop", 1)
    assert "another state of the random generator" in found.words


def test_a_draw_on_other_inputs_explains_other_states_after_it() -> None:
    """Rejection sampling takes as many numbers as its inputs need."""
    traces = []
    for number in range(2):
        machine = Machine(number, noise=["convolution in conv"])
        seen = machine.do("aten.convolution", Memory(bits("batch")), module="conv")
        machine.do("aten.poisson", seen, kind="random")
        machine.generator = bits("after", seen.digest)
        machine.do("aten.native_dropout", Memory(bits("mask")), kind="random")
        traces.append(machine.trace())
    assert told(compare(traces)) == [("operation", "convolution", "conv", 1)]


def test_a_number_from_outside_is_found_once_for_all_parameters() -> None:
    found = only(stepped(lambda machine, tensors: 0.1 + machine.number))
    assert (found.rung, found.name, found.part, found.step, found.count) == ("scalar", "aten.add_", "optimizer", 2, 2)
    assert "(alpha=-0.1 or alpha=-1.1)" in found.words


def test_another_view_is_a_number_from_outside() -> None:
    def look(machine: Machine, tensors: dict[str, Memory]) -> None:
        machine.do("aten.slice", tensors["head"], kind="view", scalars=f"0, {machine.number}, 9")

    assert told(stepped(look)) == [("scalar", "slice", "", 1)]


def test_a_number_that_came_from_a_tensor_is_explained_by_it() -> None:
    def count(machine: Machine, tensors: dict[str, Memory]) -> None:
        machine.noise = ["sum in "]
        machine.do("aten._local_scalar_dense", machine.do("aten.sum", tensors["head"]))
        machine.do("aten.slice", tensors["head"], kind="view", scalars=f"0, {machine.number}, 9")

    assert told(stepped(count)) == [("operation", "sum", "", 1)]


def test_data_that_differ_end_the_comparison() -> None:
    data = [[bits("first"), bits("second", number)] for number in range(2)]
    noise = ["nll_loss2d_forward in "]
    traces = [training(Machine(number, noise=noise), data=data[number]).trace() for number in range(2)]
    compared = compare(traces, data_step=2)
    assert compared.operations == 13
    assert [(one.step, one.count) for one in compared.findings] == [(1, 1)]
    assert compare(traces, data_step=1).operations == 0


def test_tensors_that_nobody_could_look_at_are_not_taken_for_equal() -> None:
    traces = trainings(noise=["relu in norm at 1"], steps=1)
    blind = [replace(trace, operations=tuple(_blind(one) for one in trace.operations)) for trace in traces]
    assert told(compare(blind)) == []


def _blind(operation: Operation) -> Operation:
    first, *others = operation.inputs
    return replace(operation, inputs=(Value(None, first.shape, first.dtype), *others))


def test_running_statistics_follow_the_activations_that_differ() -> None:
    compared = compare(trainings(steps=3, noise=["convolution in conv at 1"]))
    assert told(compared) == [("operation", "convolution", "conv", 1)]


def test_another_path_ends_the_comparison_and_is_told() -> None:
    traces = []
    for number in range(4):
        machine = training(Machine(number), 1)
        if number == 3:
            machine.step = 2
            machine.do("aten.cos", Memory(bits("x")), module="layer2")
        traces.append(training(machine, 1).trace())
    compared = compare(traces)
    assert compared.operations == 13
    assert only(compared).words == (
        "trial 3 does aten.cos of layer2 (optimizer, step 2, net.py:7) where trial 0 does aten.convolution of conv "
        "(forward, step 1, net.py:7): compared up to operation 13 of 27"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scalars": "end={}"}, "with the arguments end=1 and end=0: compared up to operation 0 of 2"),
        ({"rows": True}, "with the tensors 1x4 float32, 1x4 float32 and 0x4 float32, 0x4 float32: compared up to"),
    ],
)
def test_what_is_not_the_same_of_two_paths_of_the_same_words_is_told(change: dict[str, Any], said: str) -> None:
    traces = []
    for number in range(2):
        machine = Machine(number)
        rows = (number if "rows" in change else 4, 4)
        machine.do("aten.slice.Tensor", Memory(bits("x"), shape=rows), scalars=change.get("scalars", "").format(number))
        if "scalars" in change:  # of other forms too, or it were the same place
            one = machine.operations[0]
            form = replace(one.outputs[0], shape=(number, 4))
            machine.operations[0] = replace(one, outputs=(form,))
            machine.do("aten.relu", Memory(bits("y")))
        traces.append(machine.trace())
    assert said in only(compare(traces)).words


def test_a_trace_that_ends_early_is_compared_as_far_as_it_goes() -> None:
    traces = trainings(noise=["mm in head at 1"])
    traces[1] = replace(traces[1], operations=traces[1].operations[:20])
    compared = compare(traces)
    assert compared.operations == 20
    assert "trial 1 ends where trial 0 does aten.nll_loss2d_backward" in compared.findings[-1].words
    assert [rung for rung, *_ in told(compared)] == ["operation", "path"]


def test_trials_of_other_numbers_of_steps_are_compared_in_those_that_all_took() -> None:
    traces = [training(Machine(number), steps).trace() for number, steps in enumerate((1, 2, 3))]
    compared = compare(traces)
    assert (compared.findings, compared.operations) == ([], len(traces[0].operations))
    cut = replace(traces[0], operations=traces[0].operations[:-1])
    assert "trial 0 ends where" in only(compare([cut, *traces[1:]])).words


def test_the_same_operation_on_other_shapes_is_another_one() -> None:
    machines = [Machine(number) for number in range(2)]
    for machine in machines:
        machine.do("aten.relu", Memory(bits("x"), shape=(machine.number + 1, 4)))
    assert compare([machine.trace() for machine in machines]).operations == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "d"}, "trial 0 is of cell c, trial 1 of d"),
        ({"level": "modules"}, "trial 0 is of level ops, trial 1 of modules"),
        ({"number": 0}, "two traces are of one trial: 0, 0"),
    ],
)
def test_traces_that_cannot_be_compared_are_refused(changes: dict[str, Any], message: str) -> None:
    first, second = trainings()
    with pytest.raises(ValueError, match=message):
        compare([first, replace(second, **changes)])


def test_no_traces_are_no_findings() -> None:
    assert compare([]) == Compared("ops", 0, 0, [], None)
