"""The switches: what is asked for is what is read back, in a process that has only torch's own defaults."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from composed import planted_config
from conftest import TESTS

from runner import isolate
from runner.worker.flags import precisions

Switches = dict[str, Any]
Apply = Callable[..., tuple[Switches, Switches, Switches]]
TF32 = ("conv_tf32", "rnn_tf32", "matmul_tf32")


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    """Set the switches for a cell in a fresh child: what is read before, what was asked, what is read after."""

    def apply_in_child(*words: str) -> tuple[Switches, Switches, Switches]:
        path, log = tmp_path / "flags.json", tmp_path / "log.txt"
        path.write_text(json.dumps(planted_config("Plain", *words)))
        request = {"call": "called:apply_flags", "argument": str(path), "log": str(log)}
        ended = isolate.server(planted_config(), str(TESTS)).call(request, 120)
        assert ended.status == 0, log.read_text()
        found = json.loads(path.read_text())
        return found["before"], found["asked"], found["after"]

    return apply_in_child


@pytest.mark.parametrize("mode", ["default", "benchmark", "deterministic", "deterministic_benchmark"])
def test_every_mode_is_read_back_as_asked(mode: str, apply: Apply) -> None:
    _, asked, after = apply(f"cudnn={mode}")
    assert asked.items() <= after.items()
    assert (after["deterministic"], after["benchmark"]) == ("deterministic" in mode, "benchmark" in mode)


@pytest.mark.parametrize(("key", "value"), [("enabled", False), ("benchmark_limit", 0), ("benchmark_limit", 3)])
def test_the_other_switches_of_cudnn_are_read_back_as_asked(key: str, value: object, apply: Apply) -> None:
    before, asked, after = apply(f"cudnn.{key}={json.dumps(value)}")
    assert before[key] != value
    assert asked[key] == after[key] == value


def test_the_number_of_threads_is_read_back_as_asked(apply: Apply) -> None:
    before, asked, after = apply("threads=3")
    assert before["threads"] != 3  # that of the forkserver's variables
    assert asked["threads"] == after["threads"] == 3


@pytest.mark.parametrize("precision", ["default", "fp32", "tf32", "bf16", "fp16"])
def test_every_precision_is_read_back_as_asked(precision: str, apply: Apply) -> None:
    before, asked, after = apply(f"precision={precision}")
    assert asked.items() <= after.items()
    if precision in ("fp32", "tf32"):
        assert {asked[key] for key in TF32} == {precision == "tf32"}
    else:
        assert not set(TF32) & set(asked)
        assert {key: after[key] for key in TF32} == {key: before[key] for key in TF32}


@pytest.mark.parametrize(
    ("words", "algorithms", "warn_only", "fill_memory"),
    [
        (["determinism=flags"], False, False, True),
        (["determinism=full"], True, False, True),
        (["determinism=full", "determinism.warn_only=true"], True, True, True),
        (["determinism=full", "determinism.fill_memory=false"], True, False, False),
    ],
)
def test_every_determinism_is_read_back_as_asked(
    words: list[str], algorithms: bool, warn_only: bool, fill_memory: bool, apply: Apply
) -> None:
    _, asked, after = apply(*words)
    # The variable must stand before the interpreter starts: here it does not, and that must show.
    assert asked.pop("workspace", None) == (":4096:8" if algorithms else None)
    assert after["workspace"] == os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    assert asked.items() <= after.items()
    assert (after["algorithms"], after["warn_only"], after["fill_memory"]) == (algorithms, warn_only, fill_memory)


def test_switches_of_one_child_do_not_reach_the_next(apply: Apply) -> None:
    apply("cudnn=deterministic_benchmark", "precision=tf32", "determinism=full")
    before, _, _ = apply()
    assert not any(before[key] for key in ("deterministic", "benchmark", "algorithms", "matmul_tf32"))


def test_the_precision_of_fp32_arithmetic_is_named_for_each_kind() -> None:
    seen = {"conv_tf32": True, "rnn_tf32": False, "matmul_tf32": False, "enabled": True}
    assert precisions(seen) == {"conv_precision": "tf32", "rnn_precision": "ieee", "matmul_precision": "ieee"}
