"""An operation is done again on the same inputs: what differs, by how much, and what is left alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from traced import named, seen

from runner.operation import Repeated
from runner.worker.repeat import compared


def next_up(tensor: Tensor, steps: int) -> Tensor:
    """Numbers that lie so many units in the last place above."""
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return (tensor.view(integer) + steps).view(tensor.dtype)


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_bits_are_equal_also_where_they_are_nan(dtype: torch.dtype) -> None:
    tensor = torch.tensor([1.0, float("nan"), -0.0, float("inf")], dtype=dtype)
    assert compared([tensor], [tensor.clone()]) == Repeated(True, 0, 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [1, 7])
def test_the_largest_difference_in_units_and_relative(dtype: torch.dtype, steps: int) -> None:
    tensor = torch.tensor([1.0, -2.0, 3.0], dtype=dtype)
    other = tensor.clone()
    other[0], other[1] = next_up(tensor[0], 1), next_up(tensor[1], steps)
    found = compared([tensor, tensor], [tensor, other])
    apart = float((other[1].double() - tensor[1].double()).abs() / other[1].double().abs())
    assert (found.equal, found.max_ulp) == (False, steps)
    assert found.max_relative == pytest.approx(max(apart, torch.finfo(dtype).eps / (1 + torch.finfo(dtype).eps)))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 1000))
def test_units_in_the_last_place_count_across_zero(value: float, steps: int) -> None:
    start = end = torch.tensor(value)
    for _ in range(steps % 20):
        end = torch.nextafter(end, torch.tensor(float("-inf")))
    found = compared([start], [end])
    assert found.max_ulp == (steps % 20 if torch.isfinite(end) else None)


def test_signed_zeros_differ_by_nothing_but_their_bits() -> None:
    assert compared([torch.tensor(0.0)], [torch.tensor(-0.0)]) == Repeated(False, 0, 0.0)


def test_what_is_no_finite_number_differs_without_a_size() -> None:
    assert compared([torch.tensor([1, 2])], [torch.tensor([1, 3])]) == Repeated(False)
    assert compared([torch.tensor([float("nan")])], [torch.tensor([1.0])]) == Repeated(False)
    huge = torch.tensor([1e308], dtype=torch.float64)
    assert compared([huge], [-huge]) == Repeated(False, torch.iinfo(torch.int64).max, 2.0)


def test_complex_numbers_are_compared_as_pairs() -> None:
    one = torch.tensor([1 + 1j])
    assert compared([one], [torch.view_as_complex(next_up(torch.view_as_real(one), 2))]).max_ulp == 2


@contextmanager
def broken(name: str) -> Iterator[None]:
    """One operation gives other bits every time, as one does whose threads race."""

    class Broken(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result + int.from_bytes(os.urandom(3), "big") * 1e-6 if str(func) == name else result

    with Broken():
        yield


def test_an_operation_that_does_not_repeat_itself_is_found() -> None:
    with broken("aten.exp.default"):
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
