"""A planted fault is named by the module in which it is, and by its pass; what follows from it is not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from module_traces import probe_for, seeded, traced, train, written
from torch import Tensor, nn
from torch.nn import functional as F

from runner.analysis.traces import compare

pytestmark = pytest.mark.usefixtures("one_thread")


class Noise(torch.autograd.Function):
    """Adds a little to a tensor in the forward pass, or to its gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, ahead: float, back: float) -> Tensor:
        ctx.back = back
        return inputs + ahead

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0] + ctx.back, None, None


class Faulty(nn.Module):
    """A module of which one trial computes something else, in one direction."""

    def __init__(self, inner: nn.Module, ahead: float = 0.0, back: float = 0.0):
        super().__init__()
        self.inner, self.noise = inner, (ahead, back)

    def forward(self, inputs: Tensor) -> Tensor:
        return Noise.apply(F.linear(inputs, self.inner.weight), *self.noise)  # type: ignore[no-any-return]


def three(ahead: float = 0.0, back: float = 0.0) -> nn.Module:
    linears = [nn.Linear(4, 4, bias=False) for _ in range(3)]
    return nn.Sequential(linears[0], nn.ReLU(), Faulty(linears[1], ahead, back), nn.ReLU(), linears[2])


def found(make: Callable[[float], nn.Module], **how: Any) -> list[tuple[str, str, int]]:
    """What is found between two trials of which one has a fault: part, module and step."""
    data = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    models = [seeded(partial(make, fault)) for fault in (0.0, 1e-3)]
    traces = [traced(model, data, 2, number, **how) for number, model in enumerate(models)]
    return [(one.part, one.module, one.step) for one in compare(traces).findings]


def test_a_module_whose_forward_pass_differs_is_named_alone() -> None:
    assert found(lambda fault: three(ahead=fault)) == [("forward", "2", 1)]


def test_the_first_gradient_that_differs_is_named() -> None:
    assert found(lambda fault: three(back=fault)) == [("backward", "2", 1), ("backward", "2.inner", 1)]


class Between(nn.Module):
    """The gradient is changed by the model's own code between two modules."""

    def __init__(self, fault: float):
        super().__init__()
        self.stem, self.out, self.fault = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2), fault

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(Noise.apply(self.stem(inputs), 0.0, self.fault))  # type: ignore[no-any-return]


def test_no_module_is_named_for_a_gradient_that_is_made_between_modules() -> None:
    assert found(Between) == [("backward", "", 1)]
    assert found(lambda fault: nn.Sequential(nn.Linear(4, 4), Between(fault))) == [("backward", "1", 1)]


def test_code_between_modules_is_named_by_the_module_that_it_belongs_to() -> None:
    class Between(nn.Module):
        def __init__(self, fault: float):
            super().__init__()
            self.first, self.last, self.fault = nn.Linear(4, 4), nn.Linear(4, 4), fault

        def forward(self, inputs: Tensor) -> Tensor:
            return self.last(self.first(inputs) + self.fault)  # type: ignore[no-any-return]

    assert found(lambda fault: nn.Sequential(nn.ReLU(), Between(fault))) == [("forward", "1", 1)]


def disturbed(fault: float, weight: Tensor) -> None:
    weight.detach().add_(fault)


def test_an_update_that_differs_is_named() -> None:
    class Updated(nn.Linear):
        def __init__(self, fault: float):
            super().__init__(4, 4)
            self.weight.register_post_accumulate_grad_hook(partial(disturbed, fault))

    # The weights change after their gradient is done and before the optimizer: nobody sees it but in the update.
    assert found(lambda fault: nn.Sequential(nn.Linear(4, 4), Updated(fault))) == [("optimizer", "1", 1)]


def test_in_fp16_an_infinite_gradient_explains_that_no_weight_was_updated() -> None:
    traces = []
    for number, fault in enumerate([0.0, float("inf")]):
        model = seeded(partial(three, 0.0, fault))
        probe = probe_for(model, 1, number, "fp16")
        train(model, torch.ones(5, 4), probe, dtype=torch.float16)
        traces.append(written(probe))
    assert traces[0].operations[-1].outputs != traces[1].operations[-1].outputs  # of the layer after the fault
    named = [("gradient through Faulty", "2"), ("gradient of Linear", "2.inner")]
    assert [(one.name, one.module) for one in compare(traces).findings] == named
