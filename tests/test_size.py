"""Sizes of differences: units in the last place by the raw bits, relative, and errors against float64."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import size
from runner.analysis.accuracy import CellCaptures, accuracies, counterparts
from runner.analysis.size import operation_sizes
from runner.captured import Captured, CapturedOperation, write_operations, write_outputs
from runner.errors import StudyError
from runner.layout import operations_file, outputs_file
from runner.operation import Operation, Value
from runner.size import Output, size_of, ulp_distance
from runner.trace import Trace

WIDTHS = {"float16": 16, "float32": 32, "float64": 64}


def bits(values: Any, dtype: str) -> np.ndarray:
    """The raw bits of these numbers."""
    return np.atleast_1d(np.asarray(values, dtype=dtype)).view(f"u{WIDTHS[dtype] // 8}")


def output(values: Any, dtype: str = "float32") -> Output:
    return Output(bits(values, dtype), dtype)


@given(st.data(), st.sampled_from(sorted(WIDTHS)), st.integers(0, 20))
def test_so_many_steps_to_the_next_number_are_so_many_units(data: st.DataObject, dtype: str, steps: int) -> None:
    start = data.draw(st.floats(width=WIDTHS[dtype], allow_nan=False, allow_infinity=False))  # type: ignore[arg-type]
    first = np.array([start], dtype=dtype)
    up = np.array([np.inf], dtype=dtype)
    last = first
    with np.errstate(over="ignore"):
        for _ in range(steps):
            last = np.nextafter(last, up)
    assert last > first or not steps
    crossed = steps if np.isfinite(last).all() else None
    for one, other in ((first, last), (last, first)):
        distance = int(ulp_distance(bits(one, dtype), bits(other, dtype))[0])
        assert crossed is None or distance == crossed


@given(st.data(), st.sampled_from(sorted(WIDTHS)))
def test_distances_add_up_in_the_order_of_numbers(data: st.DataObject, dtype: str) -> None:
    numbers = st.floats(width=WIDTHS[dtype], allow_nan=False)  # type: ignore[arg-type]
    low, middle, high = (bits(one, dtype) for one in sorted(data.draw(st.tuples(numbers, numbers, numbers))))
    parts = int(ulp_distance(low, middle)[0]) + int(ulp_distance(middle, high)[0])
    assert int(ulp_distance(low, high)[0]) == parts


@pytest.mark.parametrize("dtype", sorted(WIDTHS))
def test_zero_has_two_signs_and_one_place(dtype: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    assert ulp_distance(bits(0.0, dtype), bits(-0.0, dtype)).tolist() == [0]
    assert ulp_distance(bits(-least, dtype), bits(least, dtype)).tolist() == [2]


def test_the_ends_of_float64_are_further_apart_than_int64_tells() -> None:
    most = bits(np.finfo("float64").max, "float64")
    least = bits(-np.finfo("float64").max, "float64")
    assert int(ulp_distance(least, most)[0]) == 2 * int(most[0]) > 2**63


def test_bfloat16_is_counted_in_its_own_units() -> None:
    one, next_one = np.array([0x3F80, 0x3F80], dtype=np.uint16), np.array([0x3F80, 0x3F83], dtype=np.uint16)
    found = size_of([Output(one, "bfloat16")], [Output(next_one, "bfloat16")])
    assert (found.elements, found.differing, found.max_ulp) == (2, 1, 3)
    assert found.max_relative == pytest.approx(3 * 2**-7 / (1 + 3 * 2**-7))


@pytest.mark.parametrize(
    ("first", "second", "relative"),
    [([1.0], [1.5], 1 / 3), ([-1.0], [1.0], 2.0), ([0.0], [-0.0], 0.0), ([0.0], [2.0], 1.0), ([4.0], [4.0], 0.0)],
)
def test_relative_is_to_the_larger_of_the_two(first: list[float], second: list[float], relative: float) -> None:
    assert size_of([output(first)], [output(second)]).max_relative == pytest.approx(relative)


def test_the_largest_float64_has_a_relative_difference_too() -> None:
    most = np.finfo("float64").max
    assert size_of([output(most, "float64")], [output(-most, "float64")]).max_relative == 2.0


def test_so_has_the_smallest() -> None:
    least = np.finfo("float64").smallest_subnormal
    assert size_of([output(2 * least, "float64")], [output(least, "float64")]).max_relative == 0.5


def test_what_is_no_number_is_counted_apart() -> None:
    first, second = [np.nan, 1.0, np.inf, 2.0], [1.0, np.nan, 3.0, 2.0]
    found = size_of([output(first)], [output(second)])
    assert (found.differing, found.one_nan, found.max_relative) == (3, 2, None)
    assert found.max_ulp == int(ulp_distance(bits(np.inf, "float32"), bits(3.0, "float32"))[0])
    assert found.words.endswith("2 of them NaN on one side alone")


def test_nan_of_other_bits_differs_and_has_no_size() -> None:
    first, second = (Output(np.array([pattern], dtype=np.uint32), "float32") for pattern in (0x7FC00000, 0x7F800001))
    found = size_of([first], [second])
    assert (found.differing, found.one_nan, found.max_ulp, found.max_relative) == (1, 0, None, None)


def test_several_outputs_are_one_size_and_whole_numbers_have_none() -> None:
    counts = Output(np.array([1, 2], dtype=np.uint64), "int64"), Output(np.array([1, 3], dtype=np.uint64), "int64")
    found = size_of([output([1.0]), counts[0]], [output([1.0]), counts[1]])
    assert (found.elements, found.differing, found.max_ulp) == (3, 1, None)
    assert found.words == "1 of 3 elements differ"
    both = size_of([output([1.0]), counts[0]], [output(np.nextafter(np.float32(1), np.float32(2))), counts[1]])
    assert both.words == "2 of 3 elements differ, by up to 1 unit in the last place (1.2e-07 relative)"


def test_large_results_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = np.ones((3, 5)), np.ones((3, 5))
    second[0, 1], second[2, 3] = 1.5, 3.0
    whole = size_of([output(first)], [output(second)])
    monkeypatch.setattr(size, "_PART", 4)
    assert size_of([output(first)], [output(second)]) == whole
    assert (whole.elements, whole.differing, whole.max_relative) == (15, 2, pytest.approx(2 / 3))


def test_results_of_other_forms_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"other forms.*float32.*float64"):
        size_of([output([1.0])], [output([1.0], "float64")])
    with pytest.raises(ValueError, match="other forms"):
        size_of([output([1.0])], [output([1.0, 2.0])])


def captured(folder: Path, values: list[float], **changes: Any) -> Captured:
    """A capture of one operation, number 7, with this result; `again` is that of a repeat."""
    again = changes.pop("again", values)
    repeated = size_of([output(values)], [output(again)])
    known = {"inputs": "same", "repeated": repeated, "tensors": True, "outputs": True, "relative_error": 1e-7} | changes
    operation = CapturedOperation(7, "aten.mm.default", 1, {}, **known)
    folder.mkdir()
    if operation.outputs:
        write_outputs(folder, 7, [output(values)])
    write_operations(folder, [operation])
    return Captured.read(folder)


def test_processes_are_compared_where_their_inputs_were_equal(tmp_path: Path) -> None:
    captures = [captured(tmp_path / "a", [1.0, 2.0]), captured(tmp_path / "b", [1.0, 3.0])]
    (found,) = operation_sizes(captures)
    assert found["index"] == 7 and found["between"]["differing"] == 1 and found["repeated"] is None
    assert found["words"].startswith("between processes 1 of 2 elements differ, by up to 4,194,304 units")


def test_other_inputs_tell_nothing_about_processes(tmp_path: Path) -> None:
    captures = [captured(tmp_path / "a", [1.0], again=[1.5]), captured(tmp_path / "b", [2.0], inputs="other")]
    (found,) = operation_sizes(captures)
    assert found["between"] is None and found["unknown"] == "not known: the captures' inputs differed"
    assert found["repeated"]["max_relative"] == pytest.approx(1 / 3)
    assert "when repeated 1 of 1 elements differ" in found["words"]


def test_what_was_not_saved_says_why(tmp_path: Path) -> None:
    reason = "outputs not saved: they take 2 GB, more than 1 GB"
    captures = [captured(tmp_path / name, [1.0], outputs=False, left_out=[reason]) for name in "ab"]
    assert operation_sizes(captures)[0]["unknown"] == f"not known: {reason}"
    assert operation_sizes([captured(tmp_path / "c", [1.0])])[0]["unknown"].endswith("or --repro FILE, captures again")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    captures = [captured(tmp_path / name, [1.0]) for name in "ab"]
    outputs_file(tmp_path / "b", 7).write_bytes(b"PK damaged")
    (found,) = operation_sizes(captures)
    assert found["between"] is None and str(outputs_file(tmp_path / "b", 7)) in found["unknown"]


def test_what_a_repeat_gave_is_read_back_and_a_damaged_size_is_named(tmp_path: Path) -> None:
    found = captured(tmp_path / "a", [1.0, 2.0], again=[1.0, 2.5]).operations[7]
    assert found.repeated == size_of([output([1.0, 2.0])], [output([1.0, 2.5])])
    path = operations_file(tmp_path / "a")
    path.write_text(path.read_text().replace('"differing": 1', '"differing": "one"'))
    with pytest.raises(StudyError, match=r"operations.0.repeated.differing holds 'one'"):
        Captured.read(tmp_path / "a")


def test_what_was_too_large_to_be_saved_has_the_size_of_its_repeats(tmp_path: Path) -> None:
    (found,) = operation_sizes([captured(tmp_path / "a", [1.0], again=[1.5], outputs=False)])
    assert found["between"] is None and found["repeated"]["differing"] == 1


def operation(index: int, module: str, name: str = "aten.mm.default") -> Operation:
    value = Value("d", (2, 2), "float32")
    return Operation(index, 1, "forward", "computed", name, module, "net.py:1", "", (value,), (value,))


def trace(*modules: str) -> Trace:
    """The same operation in these modules, after another one."""
    operations = [operation(index, module) for index, module in enumerate(modules)]
    return Trace("ops", "cell", 0, 1, tuple(operations))


def test_the_same_operation_is_found_in_another_trace_by_its_place() -> None:
    first, other = trace("a", "b", "b", "c"), trace("x", "b", "a", "b")
    assert counterparts(first, [0, 2, 3], other) == [2, 3]  # the second in b, the one in a; none in c


def cell(label: str, errors: list[float], model: str = "net", index: int = 7) -> CellCaptures:
    """A cell whose captures kept operation 7 with these relative errors."""
    kept = CapturedOperation(index, "aten.mm.default", 1, {})
    captures = [Captured(Path(), {index: replace(kept, relative_error=error)}) for error in errors]
    modules = [f"m{place}" for place in range(index)] + ["found"]
    config = {"model": {"name": model}, "dataset": {}, "probe": {"name": "ops"}}
    return CellCaptures(label, config, trace(*modules), captures)


def test_the_closer_cell_is_named_where_the_captures_agree() -> None:
    (found,) = accuracies([cell("default (F,F)", [3.1e-7, 3.1e-7]), cell("deterministic (T,F)", [2.9e-7], index=5)])
    assert found["closest"] == "deterministic (T,F)" and found["operations"] == 1
    assert found["sentence"].startswith(
        "relative error against float64 over 1 operation: 3.1e-07 (default (F,F)), 2.9e-07"
    )
    assert "deterministic (T,F) is closer" in found["sentence"]


@pytest.mark.parametrize("errors", [[3.1e-7, 2.8e-7], [3.1e-7, 3.5e-7], [2.9e-7, 2.9e-7]])
def test_no_cell_is_closer_than_captures_spread(errors: list[float]) -> None:
    (found,) = accuracies([cell("default (F,F)", errors), cell("deterministic (T,F)", [2.9e-7])])
    assert found["closest"] is None
    assert "no difference beyond the spread of the captures" in found["sentence"]


def test_cells_of_other_models_are_not_compared() -> None:
    found = accuracies([cell("one", [3e-7]), cell("two", [1e-7], model="other")])
    assert [list(one["errors"]) for one in found] == [["one"], ["two"]]
    assert all(one["closest"] is None for one in found)
