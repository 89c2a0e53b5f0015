"""What a record says of an error that ended its trial."""

from types import SimpleNamespace
from typing import Any

import pytest

from runner.worker.main import _asks_for_cuda, _said

TABLE = "Could not run 'aten::sum' with arguments from the 'SparseCPU' backend. " + (
    "'aten::sum' is only available for these backends: [CPU, CUDA].\n" + "CUDA: registered at build.cpp\n" * 99
)


ON_CPU: Any = SimpleNamespace(device="cpu", config={"model": {"_target_": "mine.Net"}, "dataset": {"name": "digits"}})


def test_a_table_of_backends_is_cut_and_asks_for_none() -> None:
    said = _said(NotImplementedError(TABLE))
    assert said.startswith("NotImplementedError: Could not run") and len(said.splitlines()) == 6
    assert _asks_for_cuda(said, ON_CPU) == ""


@pytest.mark.parametrize(
    "wants", ["RuntimeError: Found no NVIDIA driver", "AssertionError: Torch not compiled with CUDA"]
)
def test_code_that_wants_cuda_is_named(wants: str) -> None:
    assert _asks_for_cuda(wants, ON_CPU).startswith("; model._target_=mine.Net asks for CUDA")
