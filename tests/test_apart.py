"""How far results lie apart on their device, against what runner.size tells of copies."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra.numpy import arrays
from torch import Tensor

from runner.size import size_of
from runner.worker.apart import apart
from runner.worker.bits import output_of

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
FINITE = st.floats(-1e4, 1e4, width=32)


def pairs(dtype: torch.dtype) -> st.SearchStrategy[tuple[Tensor, Tensor]]:
    one = arrays(np.float32, 6, elements=FINITE).map(lambda values: torch.from_numpy(values).to(dtype))
    return st.tuples(one, one)


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_ulp_and_relative_differences_are_those_of_the_copies(dtype: torch.dtype, data: st.DataObject) -> None:
    first, other = data.draw(pairs(dtype))
    size, found = size_of([output_of(first)], [output_of(other)]), apart([first], [other])
    assert found[0] == size.max_ulp
    assert float(found[1]) == pytest.approx(size.max_relative)


def test_the_relative_distance_is_over_all_tensors_together() -> None:
    first, other = [torch.tensor([3.0, 0.0]), torch.tensor([4.0])], [torch.tensor([3.0, 0.6]), torch.tensor([4.8])]
    assert float(apart(first, other)[2]) == pytest.approx(1.0 / 5.0)


def test_nan_and_infinity_spoil_nothing() -> None:
    nan, infinite = float("nan"), float("inf")
    found = apart([torch.tensor([1.0, nan, infinite])], [torch.tensor([1.0, 2.0, infinite])])
    assert found.tolist() == [0, 0, 0]
    assert apart([torch.tensor([1, 2])], [torch.tensor([1, 3])]).tolist() == [0, 0, 0]  # integers have no ulp


def test_many_elements_are_compared_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    first = torch.linspace(1, 2, 1000)
    other = first.clone()
    other[700] = torch.nextafter(other[700], torch.tensor(9.0))
    whole = apart([first], [other])
    monkeypatch.setattr("runner.worker.apart._PART", 64)
    assert torch.allclose(apart([first], [other]), whole, rtol=1e-12)
    assert whole[0] == 1
