"""Strict algorithms: what PyTorch calls not deterministic is named once, and nothing else is held back."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from composed import planted_cell
from factory import make_cell, make_record
from one_trial import one_trial
from strict_models import Puts, PutsAndUnpools
from summaries import make_summary

from runner.analysis.flags import not_deterministic
from runner.cell import Cell
from runner.layout import log_file
from runner.report.notes import notes
from runner.worker.strict import collecting, operation_of

SAID = "does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. You can"
CUBLAS = (
    "Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` or "
    "`at::Context::setDeterministicAlgorithms(true)`, but this operation is not deterministic because it uses CuBLAS "
    "and you have CUDA >= 10.2. To enable deterministic behavior in this case, you must set"
)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (f"put_ {SAID}", "put_"),
        (f"upsample_bilinear2d_backward_out_cuda {SAID}", "upsample_bilinear2d_backward_out_cuda"),
        (f"kthvalue CUDA {SAID}", "kthvalue CUDA"),
        (f"torch::foo_op {SAID}", "torch::foo_op"),
        (f"backend='inductor' raised:\nRuntimeError: cumsum_cuda_kernel {SAID}", "cumsum_cuda_kernel"),
        (CUBLAS, "CuBLAS without CUBLAS_WORKSPACE_CONFIG (determinism.workspace)"),
        ("Flash Attention defaults to a non-deterministic algorithm. To explicitly enable", "Flash Attention"),
        ("Memory Efficient attention defaults to a non-deterministic algorithm. ", "Memory Efficient attention"),
        ("cuDNN Attention defaults to a non-deterministic algorithm. ", "cuDNN Attention"),
        ("mat1 and mat2 shapes cannot be multiplied", None),
        ("a deterministic implementation is what this layer does not have", None),
    ],
)
def test_the_operation_is_named_as_pytorch_names_it(message: str, name: str | None) -> None:
    assert operation_of(message) == name


@pytest.fixture
def warn_only():
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("warn_only")
def test_each_operation_is_collected_once_and_other_warnings_pass(capsys: pytest.CaptureFixture[str]) -> None:
    model, found = PutsAndUnpools(), []
    with warnings.catch_warnings(record=True) as passed, collecting(found):
        for _ in range(5):
            model(torch.randn(2, 1, 8, 8))
    assert found == ["max_unpooling2d_forward_out", "put_"]
    assert {str(one.message) for one in passed} == {"a warning of the model's own"}
    assert capsys.readouterr().out == "not deterministic, says PyTorch: max_unpooling2d_forward_out, put_\n"


@pytest.mark.usefixtures("warn_only")
@pytest.mark.parametrize("action", ["ignore", "error"])
def test_a_users_own_filter_hides_no_operation(action: str) -> None:
    found: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        with collecting(found):
            Puts()(torch.randn(2, 1, 8, 8))
    assert found == ["put_"]


def test_afterwards_warnings_are_shown_as_before() -> None:
    before = warnings.showwarning, list(warnings.filters)
    with collecting([]):
        pass
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_a_refusal_is_named_and_raised(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[str] = []
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="put_ does not"), collecting(found):
            Puts()(torch.randn(2, 1, 8, 8))
    finally:
        torch.use_deterministic_algorithms(False)
    assert found == ["put_"]
    with pytest.raises(ValueError, match="planted"), collecting(found):
        raise ValueError("planted")
    assert found == ["put_"]
    capsys.readouterr()


def strict_cell(target: str, *words: str) -> Cell:
    cell = planted_cell("Plain", "determinism=full", *words)
    return Cell(cell.config | {"model": cell.config["model"] | {"_target_": f"strict_models.{target}"}})


def test_a_strict_refusal_names_its_operation_in_the_record(tmp_path: Path) -> None:
    record, _ = one_trial(strict_cell("Puts"), tmp_path)
    assert (record.outcome, record.not_deterministic) == ("failed", ["put_"])
    assert "put_ does not have a deterministic implementation" in str(record.reason)


def test_warnings_are_one_line_of_the_log_and_a_list_in_the_record(tmp_path: Path) -> None:
    record, folder = one_trial(strict_cell("PutsAndUnpools", "determinism.warn_only=true"), tmp_path)
    log = log_file(folder).read_text()
    assert record.outcome == "finished", log
    assert record.not_deterministic == ["max_unpooling2d_forward_out", "put_"]
    assert json.loads((folder / "record.json").read_text())["not_deterministic"] == record.not_deterministic
    assert [line for line in log.splitlines() if "put_" in line] == [
        "not deterministic, says PyTorch: max_unpooling2d_forward_out, put_"
    ]
    assert "a warning of the model's own" in log


def test_without_strict_algorithms_nothing_is_named(tmp_path: Path) -> None:
    record, folder = one_trial(strict_cell("Puts", "determinism=flags"), tmp_path)
    assert (record.outcome, record.not_deterministic) == ("finished", [])
    assert "deterministic" not in log_file(folder).read_text()


def test_the_report_has_one_line_a_cell() -> None:
    records = [replace(make_record(make_cell(), number), not_deterministic=["put_"]) for number in range(4)]
    records.append(replace(records[0], number=4, not_deterministic=["cumsum_cuda_kernel", "put_"]))
    found = not_deterministic(records)
    assert found == {"put_": 5, "cumsum_cuda_kernel": 1}
    summary = make_summary(("default", {}))
    summary["cells"][0]["not_deterministic"] = found
    assert notes(summary) == [
        "default (F,F): PyTorch calls not deterministic: put_ in 5 of 5, cumsum_cuda_kernel in 1 of 5 trials"
    ]
