"""An operation is done again on the same inputs: what differs, by how much, and what is left alone."""

from typing import Any

import pytest
import torch
from broken.sitecustomize import Broken
from torch import Tensor, nn
from traced import named, seen

from runner.operation import Repeated
from runner.size import Size
from runner.worker.repeat import compared


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_equal_bits_are_equal_also_where_they_are_nan(dtype: torch.dtype) -> None:
    tensor = torch.tensor([1.0, float("nan"), -0.0, float("inf")], dtype=dtype)
    assert compared([tensor], [tensor.clone()]) == Size(8 if dtype.is_complex else 4, 0, 0, 0.0)


def next_up(tensor: Tensor, steps: int) -> Tensor:
    """Numbers that lie so many units in the last place above."""
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return (tensor.view(integer) + steps).view(tensor.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_largest_difference_over_all_results(dtype: torch.dtype) -> None:
    tensor, counts = torch.tensor([1.0, -2.0, 3.0], dtype=dtype), torch.tensor([1, 2])
    other = torch.cat([next_up(tensor[:1], 1), next_up(tensor[1:2], 7), tensor[2:]])
    found = compared([tensor, tensor, counts], [tensor, other, counts])
    apart = float((other[1].double() - tensor[1].double()).abs() / other[1].double().abs())
    assert found == Size(8, 2, 7, pytest.approx(apart))  # type: ignore[arg-type]


def test_complex_numbers_are_compared_as_pairs() -> None:
    one = torch.tensor([1 + 1j, 2 + 2j])
    other = torch.view_as_complex(next_up(torch.view_as_real(one), 2))
    assert compared([one.conj()], [other.conj()]) == Size(4, 4, 2, pytest.approx(2**-22))  # type: ignore[arg-type]


def test_results_of_other_shapes_differ_as_a_whole() -> None:
    assert compared([torch.ones(3)], [torch.ones(2)]) == Size(3, 3, None, None)
    assert compared([torch.ones(0)], [torch.ones(2)]).differing


def test_an_operation_that_does_not_repeat_itself_is_found() -> None:
    with Broken("aten.exp.default", "repeated"):
        operations = seen(lambda: torch.ones(8).exp().mul(2).sum(), repeat=True)
    assert [one.name for one in operations if one.repeated and not one.repeated.equal] == ["aten.exp.default"]
    found = named(operations, "exp").repeated
    assert found is not None and found.max_ulp and found.max_relative
    assert named(operations, "mul").inputs[0].digest == named(operations, "exp").outputs[0].digest


def test_what_writes_or_draws_is_not_repeated() -> None:
    tensor = torch.ones(3)
    state = torch.get_rng_state()
    operations = seen(lambda: (tensor.add_(1), torch.rand(3), torch.empty(2), tensor[:1], tensor.exp()), repeat=True)
    assert [one.name for one in operations if one.repeated] == ["aten.exp.default"]
    assert tensor.tolist() == [2.0, 2.0, 2.0]
    torch.set_rng_state(state)
    assert named(operations, "rand").outputs == named(seen(lambda: torch.rand(3)), "rand").outputs


def test_statistics_that_change_unsaid_change_once() -> None:
    model = nn.BatchNorm1d(4)
    operations = seen(lambda: model(torch.arange(8.0).reshape(2, 4)), repeat=True)
    assert named(operations, "native_batch_norm").repeated == Repeated(True, 0, 0.0)
    assert model.running_mean is not None
    torch.testing.assert_close(model.running_mean, 0.1 * torch.tensor([2.0, 3.0, 4.0, 5.0]))


@pytest.mark.parametrize("tensor", [torch.ones(3, 4).t(), torch.ones(1, 4).expand(3, 4), torch.ones(20)[3::2]])
def test_the_second_call_gets_the_same_strides(tensor: Tensor) -> None:
    strides = []

    class Looking(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            strides.extend([args[0].stride()] * (str(func) == "aten.exp.default"))
            return func(*args, **(kwargs or {}))

    with Looking():
        seen(lambda: tensor.exp(), repeat=True)
    assert strides == [tensor.stride()] * 2
