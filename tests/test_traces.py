"""Comparing traces: what is planted in one operation is found there, and nothing else is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_traces import Machine, Memory, bits, one_step, training, trainings

from runner.analysis import origins
from runner.analysis.finding import Finding
from runner.analysis.traces import Compared, compare
from runner.operation import Operation, Value
from runner.trace import Trace

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


def told(compared: Compared) -> list[tuple[str, str, str, int]]:
    """Rung, operation, module and step of everything found."""
    return [(one.rung, one.name.removeprefix("aten."), one.module, one.step) for one in compared.findings]


def only(compared: Compared) -> Finding:
    """The one finding there is."""
    (found,) = compared.findings
    return found


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_trials_have_nothing_to_tell(n: int) -> None:
    compared = compare(trainings(n, repeat=True))
    assert compared.findings == [] and compared.parted is None
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
    assert found.words.endswith("2 different results of 2, differs when repeated, by up to 3 ulp, 2.0e-07 relative")


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


def stepped(change: Callable[[Machine, dict[str, Memory]], Any], n: int = 2) -> Compared:
    """The comparison of trials that do one step, then what is given, then another step."""
    traces = []
    for number in range(n):
        machine = Machine(number)
        tensors = {name: Memory(bits(name)) for name in ("batch", "conv", "head", "mean")}
        one_step(machine, **tensors)
        rate = change(machine, tensors)
        machine.step = 2
        one_step(machine, **tensors, rate=rate or 0.1)
        traces.append(machine.trace())
    return compare(traces)


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


def test_a_tensor_changed_outside_of_aten_is_found_where_it_is_read() -> None:
    def change(machine: Machine, tensors: dict[str, Memory]) -> None:
        tensors["head"].digest = bits("numpy", machine.number)

    found = only(stepped(change))
    assert (found.rung, found.name, found.module, found.step) == ("outside", "aten.addmm", "head", 2)
    assert "a tensor that aten.add_ of head (optimizer, step 1, net.py:7) left equal" in found.words


def test_a_tensor_made_outside_of_aten_is_found_where_it_is_read() -> None:
    def add(machine: Machine, tensors: dict[str, Memory]) -> None:
        machine.do("aten.add", tensors["conv"], Memory(bits("noise", machine.number)))

    found = only(stepped(add))
    assert (found.rung, found.name) == ("outside", "aten.add")
    assert "nothing in the trace wrote" in found.words


def test_an_earlier_write_to_the_same_memory_explains_it() -> None:
    """Two halves of a buffer are written in turn: its last writer gave equal bits, the one before did not."""

    def fill(machine: Machine, tensors: dict[str, Memory]) -> None:
        machine.noise = ["copy_ in left"]
        buffer = machine.do("aten.zeros")
        machine.do("aten.copy_", buffer, tensors["head"], module="left", writes=[0], overwrites=True)
        written = buffer.digest
        machine.do("aten.copy_", buffer, tensors["head"], module="right", writes=[0], overwrites=True)
        buffer.digest = bits(written, buffer.digest)
        machine.do("aten.mul", buffer)

    assert told(stepped(fill)) == [("operation", "copy_", "left", 1)]


def test_initial_weights_that_differ_are_left_to_the_rung_above() -> None:
    traces = [training(Machine(number), start=f"start {number}").trace() for number in range(2)]
    assert told(compare(traces, same_start=False)) == []
    assert [one.rung for one in compare(traces).findings] == ["outside"]


def test_data_that_differ_end_the_comparison() -> None:
    data = [[bits("first"), bits("second", number)] for number in range(2)]
    noise = ["nll_loss2d_forward in "]
    traces = [training(Machine(number, noise=noise), data=data[number]).trace() for number in range(2)]
    compared = compare(traces, data_step=2)
    assert compared.operations == 13
    assert [(one.step, one.count) for one in compared.findings] == [(1, 1)]
    assert compare(traces, data_step=1).operations == 0


def read_raw(machine: Machine, written: Callable[[Memory], Any]) -> None:
    raw = machine.do("aten.empty", kind="uninitialised")
    raw.digest = bits("whatever lies there", machine.number)
    written(raw)
    machine.do("aten.mul", raw, module="mask")


def test_memory_that_nobody_wrote_is_found_where_it_is_read() -> None:
    found = only(stepped(lambda machine, _: read_raw(machine, lambda raw: None)))
    assert (found.rung, found.name, found.module) == ("uninitialised", "aten.mul", "mask")


def test_memory_that_was_overwritten_before_is_fine() -> None:
    def write(machine: Machine, tensors: dict[str, Memory]) -> None:
        read_raw(machine, lambda raw: machine.do("aten.zero_", raw, writes=[0], overwrites=True))

    assert told(stepped(write)) == []


def test_memory_of_which_a_part_was_written_is_still_uninitialised() -> None:
    def write(machine: Machine, tensors: dict[str, Memory]) -> None:
        def half(raw: Memory) -> None:
            before = raw.digest
            raw.shape = (2, 4)
            machine.do("aten.zero_", raw, writes=[0], overwrites=True)
            raw.shape, raw.digest = (4, 4), bits(before, raw.digest)

        read_raw(machine, half)

    assert [rung for rung, *_ in told(stepped(write))] == ["uninitialised"]


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
    assert compared.parted == only(compared).words
    assert only(compared).words == (
        "trial 3 does aten.cos of layer2 (optimizer, step 2, net.py:7) where trial 0 does aten.convolution of conv "
        "(forward, step 1, net.py:7): compared up to operation 13 of 27"
    )


def test_a_trace_that_ends_early_is_compared_as_far_as_it_goes() -> None:
    traces = trainings(noise=["mm in head at 1"])
    traces[1] = replace(traces[1], operations=traces[1].operations[:20])
    compared = compare(traces)
    assert compared.operations == 20
    assert "trial 1 ends where trial 0 does aten.nll_loss2d_backward" in (compared.parted or "")
    assert [rung for rung, *_ in told(compared)] == ["operation", "path"]


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
    assert compare([]) == Compared("ops", 0, 0, [], None, None)


def diverging(*steps: tuple[str, str | None, list[str]]) -> Trace:
    """A trace of operations, each with its name, what it gives, and the names of those that it reads."""
    machine, made = Machine(0), {"data": Memory(bits("data"))}
    for name, gives, reads in steps:
        made[name] = machine.do(f"aten.{name}", *(made[one] for one in reads), module=name, not_finite=gives)
    return machine.trace()


FINITE: tuple[str, str | None, list[str]] = ("exp", None, ["data"])


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (
            diverging(FINITE, ("log", "nan", ["exp"]), ("sum", "nan", ["log"])),
            "makes the first NaN of trial 0 from finite",
        ),
        (diverging(FINITE, ("log", "inf", ["exp"]), ("sum", "inf", ["log"])), "makes the first infinity of trial 0"),
        (diverging(("log", "nan", ["data"])), "unless its input from outside the trace held one"),
    ],
)
def test_the_maker_of_the_first_number_that_is_none_is_named(trace: Trace, words: str) -> None:
    found = compare([trace], not_finite=True).first_not_finite
    assert found is not None and (found.name, found.module) == ("aten.log", "log")
    assert words in found.words
    assert compare([trace]).first_not_finite is None


def test_a_nan_is_followed_to_its_infinity_and_a_mask_is_passed_over() -> None:
    mask = ("masked_fill", "inf", ["exp"])
    power, double = ("pow", "inf", ["exp"]), ("mul", "inf", ["pow"])
    trace = diverging(
        FINITE, mask, ("softmax", None, ["masked_fill"]), power, double, ("sub", "nan", ["mul", "softmax"])
    )
    found = compare([trace], not_finite=True).first_not_finite
    assert found is not None and found.name == "aten.sub"
    assert found.words.endswith("from an infinity, which aten.pow of pow (forward, step 1, net.py:7) made")


def test_a_difference_that_is_explained_costs_no_search_for_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes after the first difference differs: each input must be dealt with by its last writer alone."""
    calls = []
    monkeypatch.setattr(origins, "_history", lambda *given: calls.append(given) or ((), "operation"))
    compared = compare(trainings(steps=50, noise=["convolution in conv at 1"]))
    assert compared.operations == 650 and len(compared.findings) == 1
    assert calls == []
