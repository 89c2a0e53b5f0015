"""Whatever looks into a training, the training does not notice: it ends in the same bits."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from torch import nn
from traced import trial_of

from runner.models.lstm import lstm
from runner.models.resnet import resnet
from runner.models.unet import unet
from runner.trial import Trial
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.digest import digest
from runner.worker.probe import NO_PROBE, Probe, probe_of
from runner.worker.train import train_model

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
# A model, the view of its data, and the shapes of inputs and targets.
MODELS: dict[str, tuple[Callable[[], nn.Module], str, tuple[int, ...], tuple[int, ...]]] = {
    "resnet": (partial(resnet, 10, True, 1, 10), "image", (4, 1, 8, 8), (4,)),
    "unet": (partial(unet, 4, 2, "bilinear", 1, 10), "mask", (2, 1, 8, 8), (2, 8, 8)),
    "lstm": (partial(lstm, "lstm", 2, 8, False, 0.5, 10, 8, None, False), "sequence", (4, 8, 8), (4,)),
}
PROBES: dict[str, Callable[..., Trial]] = {
    "modules": partial(trial_of, "modules", steps=2),
    "ops": partial(trial_of, "ops", steps=2),
    "ops-repeated": partial(trial_of, "ops", steps=2, repeat=True),
    "ops-captured": partial(trial_of, "ops", steps=2, capture=range(0, 2000, 7)),
    "kernels": partial(trial_of, "kernels", steps=2),
}


def training(name: str, precision: str, probed: Callable[[nn.Module], Probe] = lambda _: NO_PROBE) -> tuple[str, Probe]:
    """The digest of everything that three steps leave behind (weights, losses, the generator's state), and the probe.

    After it no module has a hook.
    """
    make, view, inputs, targets = MODELS[name]
    torch.manual_seed(1)
    model = make()
    draw = torch.Generator().manual_seed(2)
    batches = ((torch.randn(inputs, generator=draw), torch.randint(10, targets, generator=draw)) for _ in range(3))
    train = {"optimizer": "adamw", "learning_rate": 0.01, "weight_decay": 0.1, "schedule": "cosine"}
    config = {"train": train | {"evaluate_every": 0}, "dataset": {"view": view}, "precision": {"name": precision}}
    probe = probed(model)
    left = train_model(model, Task(view, 10), batches, config, 3, Clock(None), lambda: None, probe)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    return digest([*model.state_dict().values(), *left.losses, torch.get_rng_state()]), probe


@cache
def plain(name: str, precision: str) -> str:
    """The digest without a probe."""
    return training(name, precision)[0]


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize(
    ("name", "precision"), [("resnet", "fp32"), ("unet", "bf16"), ("unet", "fp16"), ("lstm", "fp32")]
)
def test_a_training_that_is_looked_into_ends_in_the_same_bits(
    name: str, precision: str, probe: str, tmp_path: Path
) -> None:
    trial = PROBES[probe](precision={"name": precision})
    found, used = training(name, precision, lambda model: probe_of(trial, model, CPU))
    used.write(tmp_path)
    assert found == plain(name, precision)
    files = {"kernels": {"kernels.json"}, "ops-captured": {"ops.jsonl.gz", "operations.json"}}
    assert {path.name for path in tmp_path.iterdir()} >= files.get(probe, {"ops.jsonl.gz"})
