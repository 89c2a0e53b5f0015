"""What torch.compile costs is counted once, only while a step goes on, and paid by every trial."""

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from composed import planted_cell, planted_config
from one_trial import one_trial
from planted import Plain, plain_data
from torch import Tensor

from runner.worker.build import compiled
from runner.worker.clock import Clock
from runner.worker.compile_time import CompileTime, compile_time, own_cache
from runner.worker.contract import Task
from runner.worker.evaluate import evaluate
from runner.worker.train import train_model

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile on a CPU needs g++")


@pytest.fixture
def handler() -> Iterator[Any]:
    """Torch's own handler, as it was before."""
    from torch._dynamo.callback import callback_handler as found

    yield found
    assert not found.start_callbacks
    assert not found.end_callbacks


def compiling(handler: Any) -> Any:
    from torch._dynamo.callback import CallbackTrigger

    return handler.install_callbacks(CallbackTrigger.DYNAMO, "0/0")


@pytest.fixture
def stopwatch(handler: Any) -> CompileTime:
    """One for which every look at the clock takes a second."""
    return CompileTime(handler, now=map(float, count()).__next__)


def test_compilations_add_up_while_it_listens_and_only_then(stopwatch: CompileTime, handler: Any) -> None:
    with compiling(handler):
        pass
    for _ in range(2):
        with stopwatch, compiling(handler):
            pass
    with compiling(handler):
        pass
    assert stopwatch.seconds == 2.0


def test_one_compilation_inside_another_counts_once(stopwatch: CompileTime, handler: Any) -> None:
    with stopwatch, compiling(handler), compiling(handler):
        pass
    assert stopwatch.seconds == 1.0


def test_a_failed_compilation_counts_too_and_nothing_stays_behind(stopwatch: CompileTime, handler: Any) -> None:
    with pytest.raises(ValueError, match="no graph"), stopwatch, compiling(handler):
        raise ValueError("no graph")
    assert stopwatch.seconds == 1.0


def test_a_model_that_resets_torch_compile_does_no_harm(stopwatch: CompileTime, handler: Any) -> None:
    with stopwatch:
        torch._dynamo.reset()
    assert stopwatch.seconds == 0.0


def test_nothing_is_listened_to_without_compiling() -> None:
    assert compile_time("off") is None
    assert isinstance(compile_time("default"), CompileTime)


def test_each_trial_compiles_into_an_empty_folder_that_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "/warm")
    with own_cache("off"):
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/warm"
    with own_cache("default"):
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert list(folder.iterdir()) == []
        assert Path(os.environ["TRITON_CACHE_DIR"]).parent == folder
        (folder / "kernel").touch()
    assert not folder.exists()


def batches() -> Iterator[tuple[Tensor, Tensor]]:
    train, _ = plain_data()
    while True:
        for start in range(0, 64, 16):
            items = [train[index] for index in range(start, start + 16)]
            yield torch.stack([one for one, _ in items]), torch.stack([target for _, target in items])


@needs_compiler
def test_a_compiled_model_trains_and_is_evaluated_as_the_model_itself(handler: Any) -> None:
    losses, metrics, seconds, task = {}, {}, {}, Task("image", 10)
    _, test = plain_data()
    uneven = [torch.utils.data.default_collate([test[index] for index in part]) for part in (range(40), range(40, 64))]
    for mode in ("off", "default"):
        torch.manual_seed(3)
        model = compiled(Plain(), mode)
        clock = Clock(None, compiling=compile_time(mode))
        trained = train_model(model, task, batches(), planted_config("Plain"), 8, clock, lambda: None)
        metrics[mode] = evaluate(model, task, uneven, torch.device("cpu"), None).metrics
        losses[mode], seconds[mode] = torch.stack(trained.losses), clock.read().compile_s
    torch.testing.assert_close(losses["default"], losses["off"])
    assert metrics["default"]["loss"] == pytest.approx(metrics["off"]["loss"], rel=1e-4)
    assert seconds["off"] is None
    assert seconds["default"] > 0  # type: ignore[operator]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.parametrize("phase", ["train", "infer"])
def test_a_trial_tells_the_time_of_compiling_apart(mode: str, phase: str, tmp_path: Path) -> None:
    words = [f"train.compile={mode}", f"phase={phase}", "train.steps=12", "train.batch_size=24"]
    record, _ = one_trial(planted_cell("Plain", *words), tmp_path)
    assert (record.outcome, record.reason) == ("finished", None)
    assert record.speed is not None
    # All of it lies in the first step, of which little else is left.
    first_s = record.speed.first_step_ms / 1000
    assert 0.5 * first_s < record.speed.compile_s < first_s  # type: ignore[operator]
    assert record.speed.step_ms < record.speed.first_step_ms / 100  # type: ignore[operator]
