"""The probe of operations in a training: what was seen is left in the trial's folder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from test_unnoticed import training
from torch import nn
from traced import probed, trial_of

from runner.captured import Captured
from runner.layout import tensors_file, trace_file
from runner.operation import Operation
from runner.trace import Trace
from runner.worker.operations import OperationProbe

pytestmark = pytest.mark.usefixtures("one_thread")


def operations_of(name: str, precision: str, repeat: bool = False) -> list[Operation]:
    """The operations of the first two steps of a training."""
    trial = trial_of(steps=2, repeat=repeat)
    _, probe = training(name, precision, lambda model: OperationProbe(trial, model))
    assert isinstance(probe, OperationProbe)
    return probe.operations


@pytest.mark.parametrize("repeat", [False, True])
def test_all_parts_of_the_first_steps_are_there_and_repeats_of_a_sane_pytorch_are_equal(repeat: bool) -> None:
    operations = operations_of("unet", "bf16", repeat)
    assert {one.part for one in operations} == {"forward", "backward", "optimizer"}
    assert {one.step for one in operations} == {1, 2}
    again = [one.repeated for one in operations if one.repeated]
    assert bool(again) is repeat
    assert all(one.equal for one in again)


def test_two_traces_of_the_same_training_are_equal() -> None:
    first, second = (operations_of("lstm", "fp32") for _ in range(2))
    assert first == second
    assert len(first) > 100


def test_a_step_that_fails_leaves_what_it_has_done(tmp_path: Path) -> None:
    probe = OperationProbe(trial_of(steps=2), nn.Identity())
    with pytest.raises(IndexError, match="out of range"), probe.step(1):
        torch.ones(3).exp().select(0, 5)
    probe.write(tmp_path)
    trace = Trace.read(trace_file(tmp_path))
    assert [one.name for one in trace.operations] == ["aten.ones.default", "aten.exp.default"]
    assert (trace.level, trace.cell, trace.steps) == ("ops", "cell", 1)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_the_operations_asked_for_are_kept_as_they_were_before_and_after(tmp_path: Path) -> None:
    def do() -> None:
        torch.zeros(2).add_(3).mul_(5)

    probed(do, trial_of(capture=[1]), tmp_path / "asked")
    (kept,) = Captured.read(tmp_path / "asked").operations.values()
    assert (kept.index, kept.name) == (1, "aten.add_.Tensor")
    saved = torch.load(tensors_file(tmp_path / "asked", 1), weights_only=True)
    assert saved["args"][0].tolist() == [0.0, 0.0]
    assert Captured.read(tmp_path / "asked").outputs(1)[0].bits.view(np.float32).tolist() == [3.0, 3.0]
    probed(do, trial_of(), tmp_path / "not")
    assert [path.name for path in (tmp_path / "not").iterdir()] == ["ops.jsonl.gz"]
