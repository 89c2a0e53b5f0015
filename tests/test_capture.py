"""Captures: what they keep of an operation, what they find out about it, and which trainings are captured at all."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken.sitecustomize import Broken
from captures import Keeping, captured
from factory import Plant, make_cell, make_study
from torch import Tensor, nn

from runner import capture as captures
from runner.analysis.accuracy import cell_captures
from runner.capture import MOST_OPERATIONS, captured_indices, run_captures
from runner.captured import CapturedOperation, captures_of, tensors_file, write_operations
from runner.cell import Cell
from runner.errors import StudyError
from runner.operation import Operation, Value
from runner.record import Outcome, Record
from runner.study import Study, ops_file, record_file, trial_file
from runner.trace import Trace
from runner.trial import Trial
from runner.worker.capture import Capture


def saved(folder: Path, index: int = 0) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(tensors_file(folder, index), weights_only=True)
    return loaded


def given(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(3)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_error_is_that_of_these_results_against_float64(tmp_path: Path, dtype: torch.dtype) -> None:
    one, other = given(16, 32, dtype=dtype), given(32, 8, dtype=dtype)
    kept = captured(tmp_path, lambda: torch.mm(one, other)).operations[0]
    exact = one.double().numpy() @ other.double().numpy()
    off = torch.mm(one, other).double().numpy() - exact
    mantissa = {torch.float32: 23, torch.bfloat16: 7, torch.float16: 10}[dtype]
    units = [
        abs(error) / 2.0 ** (math.floor(math.log2(abs(value))) - mantissa)
        for error, value in zip(off.flat, exact.flat, strict=True)
    ]
    assert kept.relative_error == pytest.approx(np.linalg.norm(off) / np.linalg.norm(exact), rel=1e-6)
    assert kept.ulp_error == pytest.approx(max(units), rel=1e-6) and kept.ulp_error > 0.1
    assert kept.repeated_equal is True and kept.left_out == []


def test_noise_shows_in_repeats_and_in_the_error(tmp_path: Path) -> None:
    inputs = given(64)
    with Broken("aten.relu.default", "repeated"):
        found = captured(tmp_path, lambda: torch.relu(inputs))
    assert found.operations[0].repeated_equal is False
    assert 1e-5 < (found.operations[0].relative_error or 0) < 1
    assert not np.array_equal(found.again(0)[0].bits, found.outputs(0)[0].bits)


def test_inputs_are_kept_as_they_were_before_the_call(tmp_path: Path) -> None:
    target, addend = torch.ones(3), torch.full((3,), 2.0)
    found = captured(tmp_path, lambda: target.add_(addend))
    assert torch.equal(saved(tmp_path)["args"][0], torch.ones(3)) and torch.equal(target, torch.full((3,), 3.0))
    assert found.outputs(0)[0].bits.tolist() == target.numpy().view(np.uint32).tolist()
    assert found.operations[0].repeated_equal is None and found.operations[0].relative_error == 0


def test_statistics_that_a_kernel_changes_silently_are_kept_as_they_were(tmp_path: Path) -> None:
    norm, inputs = nn.BatchNorm2d(2), given(4, 2, 3, 3)
    found = captured(tmp_path, lambda: norm(inputs), indices=range(3))
    (index,) = [index for index, one in found.operations.items() if "batch_norm" in one.name]
    assert torch.equal(saved(tmp_path, index)["args"][3], torch.zeros(2)) and norm.running_mean.abs().sum() > 0
    assert found.operations[index].repeated_equal is True


@pytest.mark.parametrize(
    "view",
    [
        lambda one: one.t(),
        lambda one: one[2:4, 3:5],
        lambda one: one[0].expand(7, -1),
        lambda one: one[5, 3],
        lambda one: one[:0],
        lambda one: one.view(10, 2, 5).permute(2, 0, 1)[1:3],
    ],
)
def test_strides_and_alignment_are_kept_and_no_more_memory_than_needed(
    tmp_path: Path, view: Callable[[Tensor], Tensor]
) -> None:
    tensor = view(given(100, 100)[:10, :10].contiguous())
    captured(tmp_path, lambda: torch.relu(tensor))
    copy = saved(tmp_path)["args"][0]
    assert (copy.size(), copy.stride()) == (tensor.size(), tensor.stride()) and torch.equal(copy, tensor)
    assert (copy.storage_offset() - tensor.storage_offset()) % 16 == 0
    assert copy.untyped_storage().nbytes() <= 4 * (100 + 16)
    assert tensor.numel() == 0 or copy.untyped_storage().nbytes() < tensor.untyped_storage().nbytes() + 64


def test_a_list_that_is_changed_in_place_is_the_result(tmp_path: Path) -> None:
    weights = [torch.ones(2), torch.ones(3)]
    found = captured(tmp_path, lambda: torch._foreach_mul_(weights, 3.0))
    assert [one.bits.view(np.float32).tolist() for one in found.outputs(0)] == [[3.0] * 2, [3.0] * 3]
    assert [one.tolist() for one in saved(tmp_path)["args"][0]] == [[1.0] * 2, [1.0] * 3]


def test_what_can_only_be_named_is_loaded_without_pickled_code(tmp_path: Path) -> None:
    captured(tmp_path, lambda: given(1, 2, 3, 3).clone(memory_format=torch.channels_last).to(torch.bfloat16), (0, 1, 2))
    kinds = {saved(tmp_path, index)["name"]: saved(tmp_path, index)["kwargs"] for index in (1, 2)}
    assert kinds["aten.clone.default"] == {"memory_format": "torch.channels_last"}
    assert kinds["aten._to_copy.default"]["dtype"] is torch.bfloat16


def test_random_operations_are_named_and_not_kept(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = nn.functional.dropout(torch.ones(50), 0.5), torch.rand(1)
    torch.manual_seed(1)
    seen: list[Tensor] = []
    found = captured(tmp_path, lambda: seen.append(nn.functional.dropout(torch.ones(50), 0.5)), range(20))
    assert torch.equal(seen[0], expected[0]) and torch.equal(torch.rand(1), expected[1])
    drawn = [one for one in found.operations.values() if one.left_out == ["nothing saved: it draws random numbers"]]
    assert [one.name for one in drawn] == ["aten.bernoulli_.float"]
    assert not drawn[0].tensors and not tensors_file(tmp_path, drawn[0].index).exists()


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda: given(5).double().relu_(), "it works in float64 itself"),
        (lambda: given(5).argmax(), "it gives no floating-point numbers"),
    ],
)
def test_no_error_against_float64_has_a_reason(tmp_path: Path, work: Callable[[], Tensor], reason: str) -> None:
    found = captured(tmp_path, work, range(9)).operations
    last = found[max(found)]
    assert last.relative_error is None and last.left_out == [f"not done in float64: {reason}"]


def test_what_is_too_large_is_looked_at_and_not_saved(tmp_path: Path) -> None:
    found = captured(tmp_path, lambda: torch.mm(given(40, 40), given(40, 2)), range(3), limit_bytes=1000)
    large = found.operations[2]
    assert (large.tensors, large.outputs) == (False, True) and large.relative_error is not None
    assert large.left_out == ["inputs not saved: they take 6.72e-06 GB, more than 1e-06 GB"]
    assert not tensors_file(tmp_path, 2).exists() and len(found.outputs(2)) == 1


def test_sparse_tensors_are_named_and_not_kept(tmp_path: Path) -> None:
    sparse, dense = torch.eye(3).to_sparse(), torch.ones(3, 3)
    found = captured(tmp_path, lambda: torch.mm(sparse, dense))
    assert found.operations[0].left_out == ["nothing saved: an input is a Tensor of torch.sparse_coo"]


def test_inputs_are_told_apart_by_bits_and_by_scalars(tmp_path: Path) -> None:
    works = {"a": (1.0, 2.0), "b": (1.0, 2.0), "c": (1.5, 2.0), "d": (1.0, 3.0)}
    found = {
        name: captured(tmp_path / name, lambda pair=pair: torch.ones(2).mul(pair[0]).add(pair[1]), (2,))
        for name, pair in works.items()
    }
    digests = {name: one.operations[2].inputs for name, one in found.items()}
    assert digests["a"] == digests["b"] and len(set(digests.values())) == 3


@pytest.mark.parametrize("autocast", [False, True])
def test_a_captured_training_gives_the_same_weights(tmp_path: Path, autocast: bool) -> None:
    def trained(indices: range) -> list[Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(
            *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5)),
            *(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Flatten(), nn.Linear(576, 10)),
        )
        optimizer = torch.optim.AdamW(net.parameters())
        with Keeping(Capture(indices)):
            for _ in range(2):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                    loss = nn.functional.cross_entropy(net(torch.randn(4, 1, 8, 8)), torch.tensor([1, 2, 3, 4]))
                loss.backward()
                optimizer.step()
        return list(net.state_dict().values())

    plain, kept = trained(range(0)), trained(range(10_000))
    assert all(map(torch.equal, plain, kept))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gradient_on_a_gpu_is_kept_with_its_device(tmp_path: Path, dtype: torch.dtype) -> None:
    layer = nn.Conv2d(64, 64, 3, padding=1, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
    images = given(8, 64, 16, 16, dtype=dtype).cuda().contiguous(memory_format=torch.channels_last).requires_grad_()
    found = captured(tmp_path, lambda: layer(images).sum().backward(), range(99)).operations
    (gradient,) = [one for one in found.values() if one.name == "aten.convolution_backward.default"]
    assert gradient.device == "cuda" and gradient.tensors and gradient.outputs
    assert 0 < (gradient.relative_error or 0) < 0.01
    loaded = saved(tmp_path, gradient.index)["args"]
    assert loaded[1].is_cuda and loaded[1].stride() == images.stride() and torch.equal(loaded[1], images)


def probed(mode: str, **train: Any) -> Cell:
    settings = {"steps": 50, "epochs": None, "evaluate_every": 5, "schedule": "constant"} | train
    return make_cell(mode, probe={"name": "ops", "steps": 2, "repeat": False}, train=settings, isolation="spawn")


def traced(study: Study, cell: Cell, modules: list[str]) -> None:
    """A trace in the cell's first trial: one operation in each of these modules."""
    value = Value("d", (2,), "float32")
    operations = tuple(
        Operation(index, 1, "forward", "computed", "aten.mm.default", module, None, "", (value,), (value,))
        for index, module in enumerate(modules)
    )
    Trace("ops", cell.id, 0, 1, operations).write(ops_file(study.trial_folder(cell.id, 0)))
    Trial.of(cell, 0, 0, "cpu").write(trial_file(study.trial_folder(cell.id, 0)))


def finding(index: int, module: str, rung: str = "operation") -> dict[str, Any]:
    return {"rung": rung, "index": index, "name": "aten.mm.default", "module": module, "trials": [0, 1]}


def summary(*cells: tuple[Cell, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "cells": [
            {
                "cell": cell.id,
                "label": label,
                "config": cell.config,
                "why": {"findings": findings} if findings else None,
            }
            for label, (cell, findings) in zip("xyz", cells, strict=False)
        ]
    }


class Runs:
    """Stands in for isolate.run: notes the trials and leaves what a child would."""

    def __init__(self, outcomes: tuple[Outcome, ...] = ()):
        self.trials: list[Trial] = []
        self.outcomes = list(outcomes)
        self.timeouts: list[float | None] = []

    def __call__(self, trial: Trial, folder: Path, where: str, timeout: float | None, say: Any) -> Record:
        self.trials.append(trial)
        self.timeouts.append(timeout)
        assert Trial.read(trial_file(folder)) == trial
        outcome = self.outcomes.pop(0) if self.outcomes else "finished"
        record = Record.of(trial, outcome, None if outcome == "finished" else "planted", "2026-12-01T00:00:00+00:00")
        record.write(record_file(folder))
        if outcome == "finished":
            write_operations(folder, [CapturedOperation(one, "aten.mm.default", "cpu", 1, {}) for one in trial.capture])
        return record


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(captures.isolate, "run", made)
    return made


def test_each_cell_with_findings_is_captured_twice_and_its_like_once(tmp_path: Path, runs: Runs) -> None:
    noisy, clean, other = probed("default"), probed("deterministic"), make_cell("default", model={"name": "other"})
    study = make_study(tmp_path / "s", [(noisy, Plant()), (clean, Plant()), (other, Plant())], rounds=1)
    traced(study, noisy, ["a", "b", "c"])
    traced(study, clean, ["more", "a", "b", "c"])
    found = summary((noisy, [finding(1, "b"), finding(2, "c"), finding(0, "a", "scalar")]), (clean, []), (other, []))
    said: list[str] = []
    assert run_captures(study, found, said.append, timeout=7.0) == 3
    asked = [(trial.cell, trial.capture) for trial in runs.trials]
    assert asked == [(noisy.id, (1, 2)), (noisy.id, (1, 2)), (clean.id, (2, 3))]
    assert said[0] == "x: one more training keeps what 2 operations took and gave" and runs.timeouts == [7.0] * 3
    assert [list(one.operations) for one in captures_of(study, noisy.id)] == [[1, 2], [1, 2]]
    assert len(study.records()) == 3, "a capture is no trial"
    assert run_captures(study, found, said.append) == 0, "nothing is captured twice"


def test_captures_are_read_back_with_the_trace_that_counts_them(tmp_path: Path, runs: Runs) -> None:
    cell, without = probed("default"), probed("benchmark")
    study = make_study(tmp_path / "s", [(cell, Plant()), (without, Plant())], rounds=2)
    traced(study, cell, ["a", "b"])
    run_captures(study, summary((cell, [finding(1, "b")])))
    records = {one.id: [record for record in study.records() if record.cell == one.id] for one in (cell, without)}
    found = cell_captures(study, "x", cell, records[cell.id])
    assert found and found.config == cell.config and [one.module for one in found.trace.operations] == ["a", "b"]
    assert [list(one.operations) for one in found.captures] == [[1], [1]]
    assert cell_captures(study, "y", without, records[without.id]) is None
    ops_file(study.trial_folder(cell.id, 0)).write_bytes(b"damaged")
    assert cell_captures(study, "x", cell, records[cell.id]) is None


def test_only_what_is_new_is_captured_when_more_is_found(tmp_path: Path, runs: Runs) -> None:
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a", "b"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    run_captures(study, summary((cell, [finding(0, "a"), finding(1, "b")])))
    assert [trial.capture for trial in runs.trials] == [(0,), (0,), (1,), (1,)]


def test_only_a_few_operations_of_different_places_are_captured(tmp_path: Path, runs: Runs) -> None:
    findings = [finding(index, f"m{index // 2}") for index in range(40)]
    assert captured_indices({"why": {"findings": findings}}) == list(range(0, 2 * MOST_OPERATIONS, 2))
    assert captured_indices({"why": None}) == [] == captured_indices({})


@pytest.mark.parametrize(("schedule", "steps"), [("constant", 2), ("cosine", 50)])
def test_steps_that_nobody_traces_are_left_out_where_they_change_nothing(
    tmp_path: Path, runs: Runs, schedule: str, steps: int
) -> None:
    cell = probed("default", schedule=schedule)
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    assert [trial.config["train"]["steps"] for trial in runs.trials] == [steps] * 2
    assert {trial.cell for trial in runs.trials} == {cell.id}


def test_a_capture_that_fails_costs_a_line_and_one_broken_off_is_made_again(tmp_path: Path, runs: Runs) -> None:
    first, second = probed("default"), probed("benchmark")
    study = make_study(tmp_path / "s", [(first, Plant()), (second, Plant())], rounds=1)
    for cell in (first, second):
        traced(study, cell, ["a"])
    found, said = summary((first, [finding(0, "a")]), (second, [finding(0, "a")])), []  # type: ignore[var-annotated]
    runs.outcomes = ["failed", "interrupted"]
    assert run_captures(study, found, said.append) == 4
    assert said[1] == "x: 1 operation could not be captured: planted"
    assert run_captures(study, found, said.append) == 1, "the one that was interrupted, not the one that failed"
    assert [one.folder.name for one in captures_of(study, first.id)] == ["capture-002"]


def test_what_breaks_captures_as_a_whole_costs_a_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Record:
        raise StudyError("the disk is full")

    monkeypatch.setattr(captures.isolate, "run", full)
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    said: list[str] = []
    assert run_captures(study, summary((cell, [finding(0, "a")])), said.append) == 0
    assert said[-1] == "not all operations could be captured: the disk is full"


def test_a_damaged_capture_is_as_if_it_had_never_been(tmp_path: Path, runs: Runs) -> None:
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    write_operations(study.capture_folder(cell.id, 0), [replace(CapturedOperation(0, "x", "cpu", 1, {}), index="no")])  # type: ignore[arg-type]
    assert [one.folder.name for one in captures_of(study, cell.id)] == ["capture-001"]


def test_an_output_that_should_be_zero_does_not_make_the_error(tmp_path: Path) -> None:
    inputs = given(1001)
    centred = inputs - inputs.mean()
    mean = float(centred.mean())  # 0 but for rounding, as the gradient of a bias before a batch norm is
    assert abs(mean / float(centred.double().mean()) - 1) > 1e-3
    found = captured(tmp_path, lambda: torch.ops.aten.var_mean.correction(centred, [0], correction=0))
    assert 0 < (found.operations[0].relative_error or 0) < 1e-6
