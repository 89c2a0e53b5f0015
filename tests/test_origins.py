"""Origins: memory that changed outside of ATen's operations, or that nobody wrote, is found where it is read."""

from collections.abc import Callable
from typing import Any

import pytest
from made_traces import Machine, Memory, bits, only, stepped, told, training, trainings

from runner.analysis import origins
from runner.analysis.traces import compare


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


def test_a_difference_that_is_explained_costs_no_search_for_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes after the first difference differs: each input must be dealt with by its last writer alone."""
    calls = []
    monkeypatch.setattr(origins, "_history", lambda *given: calls.append(given) or ((), "operation"))
    compared = compare(trainings(steps=50, noise=["convolution in conv at 1"]))
    assert compared.operations == 650 and len(compared.findings) == 1
    assert calls == []


def test_memory_that_nobody_wrote_is_told_with_what_made_it_once_over_all_steps() -> None:
    def read(machine: Machine, tensors: dict[str, Memory]) -> None:
        for machine.step in (1, 2):
            raw = machine.do("aten.empty.memory_format", kind="uninitialised", module="stem")
            raw.digest = bits("left over", machine.number, machine.step)
            machine.do("aten.mul.Tensor", raw)

    found = only(stepped(read))
    assert (found.rung, found.name, found.count) == ("uninitialised", "aten.mul.Tensor", 2)
    assert "nothing was written since aten.empty.memory_format of stem at net.py:7 made it" in found.words


def test_what_reads_initial_weights_that_differ_first_is_told() -> None:
    traces = [training(Machine(number), start=f"start {number}").trace() for number in range(2)]
    readers = compare(traces, same_start=False).start_readers
    assert readers == [
        "aten.convolution of conv (forward, step 1, net.py:7)",
        "aten.addmm of head (forward, step 1, net.py:7)",
    ]
    assert compare(traces).start_readers == []


def test_a_buffer_from_before_the_first_step_is_told_as_one() -> None:
    traces = [training(Machine(number), start=f"start {number}").trace() for number in range(2)]
    assert "made before the first step (a buffer or attribute of the model)" in only(compare(traces)).words
