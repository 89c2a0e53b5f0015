"""Machines without cuDNN, simulated: AMD's ROCm and Apple's MPS are told apart, said, and nothing crashes."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from composed import settings
from conftest import TESTS, call

from runner.errors import ConfigError, Refusal
from runner.kernel_use import KernelCall
from runner.report.platform import APPLE, ROCM, platform_words
from runner.study import Study
from runner.worker import covariates, flags
from runner.worker.environment import environment
from runner.worker.kernels import cudnn_convolution
from runner.worker.session import usable

# Run at the start of every interpreter: what PyTorch says of itself on the other machine.
PRETENDED = {
    "rocm": "import torch\ntorch.version.hip, torch.version.cuda = '6.4.1', None\n",
    "mps": """
import functools, platform, torch
platform.platform = lambda *_: "macOS-26.1-arm64-arm-64bit"
torch.backends.mps.is_available = torch.backends.mps.is_built = functools.cache(lambda: True)
def never(*_):
    raise AssertionError("CUDA was called")
torch.cuda._lazy_init = never
""",
}
SAID = {"rocm": ROCM, "mps": APPLE}


@pytest.mark.parametrize("machine", PRETENDED)
def test_a_study_says_what_the_flags_are_there(machine: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PRETENDED[machine])
    paths = os.pathsep.join([str(tmp_path), str(TESTS)])
    words = ["model=custom", "model._target_=planted.Plain", "cudnn=default,benchmark", "trials=1", "train.steps=3"]
    small = ["train.batch_size=8", "threads=1", "tracking=off", "study=s"]
    done = call("runner", "-m", *words, *small, folder=tmp_path, PYTHONPATH=paths)
    assert done.returncode == 0, done.stdout + done.stderr
    study = Study.open(tmp_path / "s")
    assert [record.outcome for record in study.records()] == ["finished"] * 2
    assert {record.environment["device"] for record in study.records()} == {"cpu"}
    assert f"- {SAID[machine]}" in done.stdout
    other = SAID["mps" if machine == "rocm" else "rocm"]
    report = study.report_markdown.read_text()
    assert SAID[machine] in report and other not in report
    assert "no ranking: without CUDA the flags cannot act" in done.stdout


@pytest.fixture
def rocm(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """An AMD card as PyTorch shows it: under the name of CUDA."""
    card = SimpleNamespace(name="AMD Instinct MI300X", uuid="61346430-0000")
    monkeypatch.setattr(torch.version, "hip", "6.4.1")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 3_004_000)
    monkeypatch.setenv("MIOPEN_FIND_MODE", "FAST")
    return torch.device("cuda:0")


def test_the_record_of_an_amd_card_names_rocm_and_the_variables_of_miopen(rocm: torch.device) -> None:
    found = environment(rocm, 1, True)
    expected = {"device": "cuda", "hip": "6.4.1", "cuda": None, "gpu_name": "AMD Instinct MI300X", "driver": None}
    assert found.items() >= (expected | {"MIOPEN_FIND_MODE": "FAST", "cudnn": 3_004_000}).items()


def test_nvidias_variables_are_not_miopens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIOPEN_FIND_MODE", "FAST")
    assert "MIOPEN_FIND_MODE" not in environment(torch.device("cpu"), 1, False)


def test_an_amd_card_that_nvml_does_not_know_leaves_its_figures_open(rocm: torch.device) -> None:
    card = covariates.find_card(rocm)
    assert set(covariates.sample(card).values()) <= {None} or card is None


def test_a_card_that_is_not_there_is_told_with_the_kind_of_build(rocm: torch.device) -> None:
    with pytest.raises(Refusal, match=r"built for ROCm 6\.4\.1\) sees \d+ CUDA devices; choose device=cpu"):
        usable("cuda:99")


@pytest.mark.parametrize("name", ["aten::miopen_convolution", "aten::miopen_depthwise_convolution"])
def test_a_convolution_of_miopen_is_one_on_which_the_flags_act(name: str) -> None:
    assert cudnn_convolution([KernelCall(name, "net", "forward", (), ("naive_conv_fwd",))])
    assert not cudnn_convolution([KernelCall("aten::convolution", "net", "forward", (), ("naive_conv_fwd",))])


def test_mps_as_a_device_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="device=mps: has no cuDNN, so that no flag acts there; choose auto, cpu"):
        settings("device=mps")


def test_the_flags_are_set_and_read_where_there_is_an_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    before = flags.read()
    assert flags.read() == before
    assert usable("cpu").type == "cpu"


@pytest.mark.parametrize(
    ("environments", "said"),
    [
        ([{"hip": None, "platform": "Linux-6.1"}], []),
        ([{"hip": "6.4", "platform": "Linux-6.1"}], [ROCM]),
        ([{"hip": None, "platform": "macOS-26.1-arm64"}], [APPLE]),
        ([{"hip": "6.4", "platform": "Linux"}, {"hip": None, "platform": "Darwin-24"}], [ROCM, APPLE]),
        ([{}], []),
    ],
)
def test_each_platform_has_its_line(environments: list[dict[str, Any]], said: list[str]) -> None:
    assert platform_words({"environments": environments}) == said
