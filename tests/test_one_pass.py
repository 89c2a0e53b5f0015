"""The kernel that looks at a tensor in one pass, in Triton's interpreter: it needs no GPU, and no compiler."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from runner.worker.deferred import in_one_pass

SCRIPT = Path(__file__).with_name("one_pass_interpreted.py")


@pytest.fixture(scope="module")
def found() -> Any:
    pytest.importorskip("triton", reason="builds of PyTorch for the CPU alone come without Triton")
    return json.loads(subprocess.run([sys.executable, SCRIPT], check=True, capture_output=True, timeout=600).stdout)


def test_its_sums_are_those_of_the_definition(found: Any) -> None:
    assert len(found["sums"]) == 7
    assert all(found["sums"].values())


def test_what_is_not_finite_is_found_wherever_it_stands_and_the_largest_numbers_are_finite(found: Any) -> None:
    assert len(found["said"]) == 5 * 4 * 4
    for case, said in found["said"].items():
        expected = "nan" if "nan" in case else "inf" if "inf" in case else None
        assert said == [True, expected], case


def test_a_cpu_has_no_such_pass() -> None:
    assert in_one_pass(torch.device("cpu")) is None
