"""Gradients between modules as the probe sees them: those that autograd has, each with what it follows from."""

import gc
from typing import Any

import pytest
import torch
from module_traces import Block, forward, hexed, images, probe_for, seeded, traced, train
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_gradients_between_modules_are_those_that_autograd_has_and_stay_as_they_are(precision: Any) -> None:
    model, twin = (seeded(lambda: nn.Sequential(Block(), nn.Identity(), nn.Flatten(), nn.Linear(32, 2))) for _ in "12")
    trace = traced(model, images(), dtype=precision)
    train(twin, images(), dtype=precision)
    assert all(map(torch.equal, model.state_dict().values(), twin.state_dict().values()))
    block: Any = seeded(lambda: nn.Sequential(Block(), nn.Identity(), nn.Flatten(), nn.Linear(32, 2)))
    with torch.autocast("cpu", dtype=precision, enabled=precision is not None):
        rows = block[:3](images())
        outputs = block[3](rows)
    given = torch.autograd.grad(outputs.float().square().mean(), [outputs, rows])
    arrived = [one.outputs[0].digest for one in trace.operations if "through" in one.name]
    assert arrived[:2] == [hexed(one) for one in given]


def test_a_gradient_follows_from_those_of_all_calls_that_used_the_tensor_or_the_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4, bias=False), nn.ReLU()

        def forward(self, inputs: Tensor) -> Tensor:
            once = self.last(self.first(inputs))
            return F.linear(once, self.first.weight) + once

    trace = traced(seeded(Tied), torch.randn(3, 4))
    loss, relu, first = [one for one in trace.operations if "through" in one.name]
    assert [(one.name.split()[-1], one.module) for one in (loss, relu, first)] == [
        ("loss", ""), ("Tied", ""), ("ReLU", "last")]  # fmt: skip
    weight = next(one for one in trace.operations if one.name == "gradient of Linear")
    assert relu.inputs[0].source == loss.index and first.inputs[0].source == relu.index
    assert {value.source for value in weight.inputs} >= {loss.index, first.index}


def test_no_graph_is_kept_alive_by_a_step_without_a_gradient_pass() -> None:
    model, memory = seeded(lambda: nn.Sequential(Block(), nn.Linear(4, 2), nn.ReLU())), []

    def step() -> None:
        inputs = images().requires_grad_()
        memory.append(StorageWeakRef(inputs.untyped_storage()))
        model(inputs)

    with probe_for(model).step(1):
        step()
    gc.collect()
    assert memory[0].expired()


def test_modules_that_a_transform_of_functions_calls_are_passed_over() -> None:
    class Mapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            sines = torch.func.vmap(lambda row: torch.func.grad(lambda one: one.sin().sum())(row))(self.linear(inputs))
            weights = dict(self.linear.named_parameters())
            mapped = torch.func.vmap(lambda row: torch.func.functional_call(self.linear, weights, (row,)))(inputs)
            return sines + mapped  # type: ignore[no-any-return]

    trace = traced(seeded(Mapped), torch.randn(3, 4))
    assert [one.module for one in trace.operations if "through" in one.name] == ["", ""]
    assert [one.outputs[0].digest is None for one in trace.operations if one.name == "Linear"] == [False, True]


def test_activations_that_are_computed_again_stand_in_the_backward_pass() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.last = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.last(checkpoint(self.inner, inputs, use_reentrant=False))  # type: ignore[no-any-return]

    trace = traced(seeded(Checkpointed), torch.randn(2, 4))
    again = [one.module for one in trace.operations if one.part == "backward" and "through" not in one.name]
    assert again[-2:] == ["last", "inner.0"]
    assert again[:-2][:1] == ["inner.0"]
    ahead, back = (
        next(one for one in trace.operations if one.module == "inner.0" and one.part == part) for part in PARTS
    )
    assert ahead.outputs[0].digest == back.outputs[0].digest


PARTS = ("forward", "backward")


def test_a_model_in_torchscript_gives_gradients_and_no_calls() -> None:
    model = nn.Sequential(torch.jit.script(nn.Linear(4, 4)), nn.Linear(4, 2))
    trace = traced(model, torch.randn(2, 4))
    assert forward(trace) == [("Sequential", ""), ("Linear", "1"), ("Sequential", "")]
    assert [one.module for one in trace.operations if one.part == "optimizer"] == ["0", "1"]
