"""Quantities of calls, kernels and flags against examples that were worked out by hand."""

from dataclasses import replace
from math import log
from typing import Any

import pytest
from factory import make_sample
from many_calls import calling, make_calls, make_results, make_use
from recipes import make_row

from runner.analysis.looks import Looks
from runner.analysis.measured import Measured, Measurement
from runner.analysis.quantity import quantity
from runner.calls import Loop, ShapeCalls

FOUR = ("default", "benchmark", "deterministic", "deterministic_benchmark")


def of_one(name: str, one: Measurement, mode: str = "default") -> Any:
    return quantity(make_row(quantity=name, cell={"cudnn": mode}, over={}), [one])


def of_two(name: str, own: Measurement, other: Measurement) -> Any:
    return quantity(make_row(quantity=name, cell={"cudnn": "deterministic"}, over={"cudnn": "default"}), [own, other])


def test_loops_are_means_over_trials() -> None:
    one = calling("default", [make_calls(1.0, 0.1), make_calls(1.4, 0.3)])
    assert of_one("loop_cold", one).value == pytest.approx(1.2)
    assert of_one("loop_warm", one).value == pytest.approx(0.2)
    assert of_one("loop_done", one).value == pytest.approx(1.6)
    assert of_one("first_call", one).value == pytest.approx(0.5)


def test_a_trial_that_began_cold_has_no_say_in_first_calls_and_loops() -> None:
    one = calling("default", [make_calls(9.0), make_calls(1.0), make_calls(1.2)])
    records = list(one.sample.records)
    records[0] = replace(records[0], speed=replace(records[0].speed, first_step_read_bytes=2**30))
    cold = replace(one, sample=replace(one.sample, records=records))
    assert of_one("loop_cold", cold).value == pytest.approx(1.1)


def test_loops_are_compared_by_round() -> None:
    # 1.2 / 1.0 and 2.4 / 2.0: a slow round hits both
    own = calling("deterministic", [make_calls(1.2, 0.2), make_calls(2.4, 0.2)])
    other = calling("default", [make_calls(1.0, 0.1), make_calls(2.0, 0.1)])
    assert of_two("loop_cold_ratio", own, other) == Measured(pytest.approx(1.2), pytest.approx((1.2, 1.2)), 2)
    assert of_two("loop_cold_overhead", own, other).value == pytest.approx(20)
    assert of_two("loop_warm_overhead", own, other).value == pytest.approx(100)
    assert of_two("loop_done_ratio", own, other).value == pytest.approx((1.6 / 1.4 * 2.8 / 2.4) ** 0.5)


@pytest.mark.parametrize(
    ("own", "word"),
    [((1.2, 1.21, 1.19), "slower"), ((0.8, 0.81, 0.79), "faster"), ((1.0, 1.001, 0.999), "equivalent")],
)
def test_a_loop_in_a_word(own: tuple[float, ...], word: str) -> None:
    def done(seconds: float) -> Any:
        return make_calls(cold=Loop(0.1, seconds))

    mine = calling("deterministic", [done(value) for value in own])
    found = of_two("loop_verdict", mine, calling("default", [done(1.0)] * 3))
    assert found.value == word and "[" in found.note


def test_a_step_in_a_word() -> None:
    own, other = (
        Measurement(make_sample(mode, times), {}, 0.02, Looks.of([20]))
        for mode, times in (("deterministic", [12.0, 12.1, 12.05]), ("default", [10.0, 10.0, 10.0]))
    )
    assert of_two("step_verdict", own, other).value == "slower"
    assert of_two("step_verdict", replace(own, sample=replace(other.sample, cell=own.sample.cell)), other).value == (
        "equivalent"
    )


def shapes(*first_ms: float) -> Any:
    return make_calls(shapes=[ShapeCalls(f"1x{number}", ms, 0.02, 4.0) for number, ms in enumerate(first_ms)])


def test_first_calls_on_further_shapes() -> None:
    # excess over two further shapes: (0.4 + 0.5) - (0.01 + 0.01) s and (0.5 + 0.5) - 0.02 s
    own = calling("deterministic", [shapes(900, 400, 500), shapes(900, 500, 500)])
    other = calling("default", [shapes(300, 10, 10)] * 2)
    assert of_one("new_shape_call", own, "deterministic").value == pytest.approx(475)
    found = of_two("tunes_shapes", own, other)
    assert (found.value, found.trials) == ("yes", 2)
    assert found.note.startswith("0.93 s [")
    assert of_two("tunes_shapes", calling("deterministic", [shapes(300, 11, 10)] * 2), other).value == "no"
    alone = calling("deterministic", [make_calls()] * 2)
    assert "several input shapes" in of_two("tunes_shapes", alone, calling("default", [make_calls()] * 2))


def test_results_within_a_process() -> None:
    off = make_results(distinct=7, max_ulp=3, max_relative=2e-7, relative=1.2e-7)
    one = calling("default", [make_calls(), make_calls(gradients=off, backward=True)])
    assert of_one("repeats", one).value == "differs"
    assert of_one("distinct_results", one) == Measured("some of n", None, 2, note="7 of 100 calls")
    assert of_one("ulp_difference", one).value == 3
    assert of_one("relative_difference", one) == Measured(1.2e-7, (1.2e-7, 1.2e-7), 2) or (
        of_one("relative_difference", one).value == 1.2e-7
    )
    equal = calling("default", [make_calls()] * 3)
    assert (of_one("repeats", equal).value, of_one("distinct_results", equal).value) == ("bitwise", "1 of n")
    assert of_one("ulp_difference", equal).value == 0


def exactness(*errors: float) -> list[Any]:
    return [make_calls(outputs=make_results(float64_error=error)) for error in errors]


def test_how_far_modes_lie_from_float64() -> None:
    errors = {"default": (2e-7, 2.1e-7, 2e-7), "benchmark": (4e-7,) * 3, "deterministic": (1e-7,) * 3}
    cells = [calling(mode, exactness(*values)) for mode, values in errors.items()]
    row = make_row(quantity="most_exact", cell={}, over={})
    found = quantity(row, cells)
    assert isinstance(found, Measured) and found.value == "deterministic"
    assert found.note and "benchmark 4e-07" in found.note
    tied = quantity(row, [calling(mode, exactness(1e-7, 1.1e-7, 0.9e-7)) for mode in FOUR])
    assert isinstance(tied, Measured) and set(str(tied.value).split(" or ")) == set(FOUR)
    ratio = of_two("float64_error_ratio", cells[2], calling("default", exactness(2e-7, 2e-7, 2e-7)))
    assert log(ratio.value) == pytest.approx(log(0.5))


def test_gradients_are_what_is_exact_or_not_where_there_are_any() -> None:
    gradients = make_results(float64_error=5e-6)
    one = calling("default", [make_calls(gradients=gradients, backward=True)] * 2)
    assert of_one("float64_error", one).value == pytest.approx(5e-6)
    why = calling("default", [make_calls(outputs=make_results(float64_error=None), no_error="no float64")] * 2)
    assert of_one("float64_error", why) == "not compared with float64: no float64"


@pytest.mark.parametrize(
    ("calls", "word", "note"),
    [
        ([("aten::_cudnn_rnn", "kernel")], "yes", "aten::_cudnn_rnn"),
        ([("aten::convolution_backward", "cudnn::wgrad")], "yes", "aten::convolution_backward"),
        ([("aten::relu", "at::native::relu")], "no", None),
    ],
)
def test_what_ran_through_cudnn(calls: list[tuple[str, str]], word: str, note: str | None) -> None:
    found = of_one("ran_cudnn", calling("default", [make_calls()], [make_use(*calls)]))
    assert (found.value, found.note) == (word, note)


def test_nothing_is_said_of_kernels_that_nobody_saw() -> None:
    one = calling("default", [make_calls()])
    assert of_one("ran_cudnn", one) == of_one("same_kernels", one) == "no kernels were looked at"


@pytest.mark.parametrize(("choices", "word"), [([], "yes"), ([{"name": "aten::conv"}], "no")])
def test_whether_processes_ran_the_same_kernels(choices: list[Any], word: str) -> None:
    one = calling("default", [make_calls()] * 3)
    kernels = {"choices": choices, "unlike": [], "trials": 3}
    found = of_one("same_kernels", replace(one, cell=one.cell | {"kernels": kernels}))
    assert (found.value, found.note) == (word, "the slowest process's call takes 1.100 times the fastest's")


def test_whether_two_cells_end_with_the_same_bits() -> None:
    own, other = calling("deterministic", [make_calls()] * 2), calling("default", [make_calls()] * 2)
    assert of_two("same_bits", own, other).value == "yes"
    records = [
        replace(one, digests=replace(one.digests, final="0" * 32)) for one in other.sample.records if one.digests
    ]
    changed = replace(other, sample=replace(other.sample, records=records))
    assert of_two("same_bits", own, changed).value == "no"


def test_pytorchs_own_mode_is_what_processes_read() -> None:
    one = calling("default", [make_calls()] * 2)
    assert of_one("default_mode", one) == "the trials did not read it"
    read = {"deterministic": False, "benchmark": False}
    records = [replace(record, flags=record.flags | {"default": read}) for record in one.sample.records]
    found = of_one("default_mode", replace(one, sample=replace(one.sample, records=records)))
    assert found == Measured("default", None, 2)


@pytest.mark.parametrize("name", ["loop_cold", "first_call", "repeats", "ulp_difference", "float64_error"])
def test_trainings_have_no_calls(name: str) -> None:
    one = Measurement(make_sample("default", [10.0, 10.0]), {"speed": {}}, 0.02, Looks.of([20]))
    assert of_one(name, one) == "there are no calls: phase=calls is needed"
