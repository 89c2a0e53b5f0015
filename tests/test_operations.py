"""The probe of operations in a training: the training does not notice, and what was seen is left in its folder."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from traced import trial_of

from runner.models.lstm import lstm
from runner.models.resnet import resnet
from runner.models.unet import unet
from runner.study import ops_file
from runner.trace import Trace
from runner.worker.clock import Clock
from runner.worker.digest import digest
from runner.worker.operations import OperationProbe
from runner.worker.probe import NO_PROBE, Probe
from runner.worker.train import train_model


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are only slowed down by threads that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


MODELS: dict[str, tuple[Callable[[], nn.Module], str, tuple[int, ...], tuple[int, ...]]] = {
    "resnet": (partial(resnet, 10, True, 1, 10), "image", (4, 1, 8, 8), (4,)),
    "unet": (partial(unet, 4, 2, "bilinear", 1, 10), "mask", (2, 1, 8, 8), (2, 8, 8)),
    "lstm": (partial(lstm, "lstm", 2, 8, False, 0.5, 10, 8, None, False), "sequence", (4, 8, 8), (4,)),
}


def training(name: str, precision: str, probed: Callable[[nn.Module], Probe]) -> tuple[str, Probe]:
    """The digest of everything that three steps leave behind: weights, losses, the generator's state."""
    make, view, inputs, targets = MODELS[name]
    torch.manual_seed(1)
    model = make()
    draw = torch.Generator().manual_seed(2)
    batches = ((torch.randn(inputs, generator=draw), torch.randint(10, targets, generator=draw)) for _ in range(3))
    train = {"optimizer": "adamw", "learning_rate": 0.01, "weight_decay": 0.1, "schedule": "cosine"}
    config = {"train": train | {"evaluate_every": 0}, "dataset": {"view": view}, "precision": {"name": precision}}
    probe = probed(model)
    left = train_model(model, batches, config, 3, 10, Clock(None), lambda: None, probe)
    return digest([*model.state_dict().values(), *left.losses, torch.get_rng_state()]), probe


@pytest.mark.parametrize("repeat", [False, True], ids=["once", "repeated"])
@pytest.mark.parametrize(
    ("name", "precision"), [("resnet", "fp32"), ("unet", "bf16"), ("unet", "fp16"), ("lstm", "fp32")]
)
def test_a_traced_training_ends_in_the_same_bits(name: str, precision: str, repeat: bool) -> None:
    plain, _ = training(name, precision, lambda model: NO_PROBE)
    probed, probe = training(name, precision, lambda model: OperationProbe(trial_of(2, repeat), model))
    assert isinstance(probe, OperationProbe)
    assert probed == plain
    again = [one.repeated for one in probe.operations if one.repeated]
    assert bool(again) is repeat
    assert all(one.equal for one in again)
    assert {one.part for one in probe.operations} == {"forward", "backward", "optimizer"}
    assert {one.step for one in probe.operations} == {1, 2}


def test_two_traces_of_the_same_training_are_equal() -> None:
    traces = [training("lstm", "fp32", lambda model: OperationProbe(trial_of(2), model))[1] for _ in range(2)]
    first, second = (probe.operations for probe in traces if isinstance(probe, OperationProbe))
    assert first == second
    assert len(first) > 100


def test_a_step_that_fails_leaves_what_it_has_done(tmp_path: Path) -> None:
    probe = OperationProbe(trial_of(2), nn.Identity())
    with pytest.raises(IndexError, match="out of range"), probe.step(1):
        torch.ones(3).exp().select(0, 5)
    probe.write(tmp_path)
    trace = Trace.read(ops_file(tmp_path))
    assert [one.name for one in trace.operations] == ["aten.ones.default", "aten.exp.default"]
    assert (trace.level, trace.cell, trace.steps) == ("ops", "cell", 1)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


class Kept:
    """A capture that remembers what it is given."""

    indices = frozenset({1})

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def before(self, index: int, func: Any, args: Any, kwargs: Any) -> None:
        self.calls.append((index, str(func), float(args[0][0])))

    def keep(self, index: int, func: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        self.calls.append((index, str(func), float(outputs[0])))

    def write(self, folder: Path) -> None:
        self.calls.append(folder)


def test_the_operations_asked_for_are_captured_before_and_after(tmp_path: Path) -> None:
    kept = Kept()
    probe = OperationProbe(trial_of(), nn.Identity(), kept)
    with probe.step(1):
        torch.zeros(2).add_(3).mul_(5)
    probe.write(tmp_path)
    assert kept.calls == [(1, "aten.add_.Tensor", 0.0), (1, "aten.add_.Tensor", 3.0), tmp_path]
