"""Every operation is put where it stands in the user's model, forwards and backwards."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from traced import named, seen, traced, trial_of

from runner.operation import Operation
from runner.worker.operations import OperationProbe

FILE = Path(__file__).name


def line_of(function: Any, text: str) -> str:
    """Where this text stands in a function of this file."""
    lines, first = inspect.getsourcelines(function)
    return f"{FILE}:{first + next(number for number, line in enumerate(lines) if text in line)}"


class Two(nn.Module):
    """Two named layers, an activation without a module, one layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 4) -> (B, 4)."""
        hidden = self.first(inputs).exp()
        hidden = self.block(hidden)
        return self.first(hidden)


def places(operations: list[Operation], name: str, part: str) -> list[tuple[str, str | None]]:
    """Modules and lines of the operations of this name in a part, in order."""
    return [(one.module, one.line) for one in operations if one.name.split(".")[1] == name and one.part == part]


def test_forward_and_backward_stand_in_the_same_module_and_line() -> None:
    operations = traced(Two())
    first, block, last = (line_of(Two, text) for text in ("self.first(inputs)", "self.block(", "return self.first("))
    assert places(operations, "addmm", "forward") == [("first", first), ("block.0", block), ("first", last)]
    assert places(operations, "exp", "forward") == [("", first)]
    assert places(operations, "tanh", "forward") == [("block.1", block)]
    backward = places(operations, "mm", "backward")
    assert list(dict.fromkeys(backward)) == [("first", last), ("block.0", block), ("first", first)]
    assert places(operations, "tanh_backward", "backward") == [("block.1", block)]


def test_operations_that_need_no_gradient_do_not_take_the_place_of_those_that_do() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.count = nn.Tanh(), nn.Buffer(torch.zeros(()))

        def forward(self, inputs: Tensor) -> Tensor:
            result: Tensor = self.layer(inputs)
            self.count.add_(1)
            return result

    model = Counted()
    operations = traced(model, lambda model: model(torch.ones(2, requires_grad=True)).sum())
    assert places(operations, "tanh_backward", "backward") == [("layer", line_of(Counted, "self.layer(inputs)"))]


def test_gradients_that_are_summed_up_belong_to_the_parameter() -> None:
    model = Two()
    operations = traced(model, steps=2)  # the gradients of the first step are still there
    second = [one for one in operations if one.step == 2 and one.part == "backward" and one.name == "aten.add_.Tensor"]
    assert {one.module for one in second} == {"first", "block.0"}


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_update_of_one_parameter_belongs_to_its_module(kind: Callable[..., Any]) -> None:
    model = Two()
    optimizer = kind(model.parameters(), lr=0.1, weight_decay=0.1, foreach=False)
    operations = traced(model, optimizer=optimizer, steps=2)
    updates = [one for one in operations if one.part == "optimizer" and one.writes and one.inputs[0].shape]
    assert len(updates) >= 2 * 4  # parameters in two steps
    assert {one.module for one in updates} == {"first", "block.0"}


def test_an_update_of_several_modules_belongs_to_none() -> None:
    model = Two()
    operations = traced(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, foreach=True))
    updates = [one for one in operations if one.name.startswith("aten._foreach")]
    assert [(one.part, one.module) for one in updates] == [("optimizer", "")]
    alone = nn.Linear(4, 4)
    operations = traced(nn.Sequential(alone), optimizer=torch.optim.SGD(alone.parameters(), lr=0.1, foreach=True))
    assert {one.module for one in operations if one.name.startswith("aten._foreach")} == {"0"}


class Cubed(torch.autograd.Function):
    """A function with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        ctx.save_for_backward(inputs)
        return inputs**3

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        (inputs,) = ctx.saved_tensors
        return gradients[0] * inputs.square() * 3  # type: ignore[no-any-return]


def test_a_function_of_the_users_own_keeps_its_own_lines() -> None:
    class Cube(nn.Module):
        def forward(self, inputs: Tensor) -> Any:
            return Cubed.apply(inputs)

    model = nn.Sequential(nn.Linear(4, 4), Cube(), nn.Linear(4, 4))
    operations = traced(model)
    assert places(operations, "pow", "forward") == [("1", line_of(Cubed, "inputs**3"))]
    square = [one for one in operations if one.line == line_of(Cubed, "square()") and one.part == "backward"]
    assert [one.module for one in square] == ["1"] * 3


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_stands_where_it_stood(reentrant: bool) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def forward(self, inputs: Tensor) -> Any:
            return checkpoint(self.inner, inputs, use_reentrant=reentrant)

    model = nn.Sequential(nn.Linear(4, 4), Saving(), nn.Linear(4, 1))
    operations = traced(model)
    assert [module for module, _ in places(operations, "tanh", "forward")] == ["1.inner.1"]
    assert [module for module, _ in places(operations, "tanh", "backward")] == ["1.inner.1"]
    assert [module for module, _ in places(operations, "tanh_backward", "backward")] == ["1.inner.1"]
    products = [module for module, _ in places(operations, "mm", "backward")]
    assert list(dict.fromkeys(products)) == ["2", "1.inner.2", "1.inner.0", "0"]


def test_a_module_that_fails_and_is_caught_does_not_stay() -> None:
    class Failing(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            raise ValueError

    class Catching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.failing, self.good = nn.Sequential(Failing()), nn.Tanh()

        def forward(self, inputs: Tensor) -> Tensor:
            try:
                return self.failing(inputs)  # type: ignore[no-any-return]
            except ValueError:
                return self.good(inputs).exp()  # type: ignore[no-any-return]

    operations = traced(Catching(), lambda model: model(torch.ones(2, requires_grad=True)).sum())
    assert [one.module for one in operations if one.name in ("aten.tanh.default", "aten.exp.default")] == ["good", ""]


def test_nothing_stays_hooked_and_no_module_of_another_model_is_followed() -> None:
    hooks = nn.modules.module._global_forward_hooks
    other = nn.Sequential(nn.Tanh())
    probe = OperationProbe(trial_of(), nn.Sequential(nn.Tanh()))
    with probe.step(1):
        assert len(hooks) == 1
        other(torch.ones(2))
    assert not hooks
    assert named(list(probe.operations), "tanh").module == ""


def test_files_of_packages_are_seen_from_their_package() -> None:
    from torchvision.models.resnet import BasicBlock
    from torchvision.ops import box_area

    block = BasicBlock(2, 2)
    operations = seen(lambda: (block(torch.ones(1, 2, 4, 4)), box_area(torch.ones(1, 4))))
    lines = [one.line for one in operations if one.line]
    assert any(line.startswith("torchvision/models/resnet.py:") for line in lines)
    assert any(line.startswith("torchvision/ops/boxes.py:") for line in lines)
    assert not any("site-packages" in line or line.startswith("/") for line in lines)
