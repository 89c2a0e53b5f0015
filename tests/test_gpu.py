"""What only an NVIDIA GPU can show. Each test skips without one."""

import json
from pathlib import Path

import pytest
import torch
from conftest import study

from runner.data import load
from runner.data.batches import train_batches
from runner.data.residence import place
from runner.worker.digest import digest, lanes, text
from runner.worker.train import train_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
DEVICE = torch.device("cuda")
SYNTHETIC = {
    "name": "synthetic",
    "view": "image",
    "items": 64,
    "test_items": 16,
    "channels": 3,
    "classes": 10,
    "size": 32,
    "sizes": [],
    "length": 32,
    "lengths": [],
    "resident": None,
    "workers": 0,
}
CONFIG = {
    "train": {
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "weight_decay": 0.0,
        "schedule": "cosine",
        "evaluate_every": None,
    },
    "dataset": {"view": "image"},
    "precision": {"name": "fp32"},
}


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_nothing_waits_for_the_device_between_steps(precision: str, optimizer: str) -> None:
    from runner.models.resnet import resnet
    from runner.worker.clock import Clock, recorded_event

    data = place(load(SYNTHETIC), DEVICE)
    model = resnet(depth=10, cifar_stem=True, channels=3, classes=10).to(DEVICE)
    batches = train_batches(data, 16, 20, DEVICE, order_seed=1, augment_seed=1)

    def watched() -> object:
        for number, batch in enumerate(batches):
            if number == 1:  # the first step checks its targets, which waits once
                torch.cuda.set_sync_debug_mode("error")
            yield batch

    try:
        config = {**CONFIG, "train": {**CONFIG["train"], "optimizer": optimizer}, "precision": {"name": precision}}
        trained = train_model(model, watched(), config, 20, 10, Clock(recorded_event), lambda: None)  # type: ignore[arg-type]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(trained.losses) == 20


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
def test_a_digest_is_the_same_on_both_devices(dtype: torch.dtype) -> None:
    tensors = [(torch.randn(3, 1001) * 100).to(dtype), (torch.randn(7) * 100).to(dtype)]
    there = [tensor.to(DEVICE) for tensor in tensors]
    assert digest(tensors) == digest(there) == text(lanes(there), there)


def test_the_flags_matter_for_a_convolutional_network(tmp_path: Path) -> None:
    words = ["trials=3", "train.steps=30", "train.optimizer=sgd", "train.learning_rate=0.01"]
    done = study("cudnn=glob(*)", *words, folder=tmp_path)
    cells = json.loads(done.summary_json.read_text())["cells"]
    verdicts = {cell["label"].split(" ")[0]: cell["reproducibility"]["verdict"] for cell in cells}
    assert verdicts["deterministic"] == "bitwise"
    assert verdicts["default"] == "differs"
    assert "inert" not in {cell["speed"]["ratio_to_baseline"]["verdict"] for cell in cells}
    assert all(record.environment["gpu_uuid"] for record in done.records())
    assert all(record.speed and record.speed.wait_ms < 5 for record in done.records())  # type: ignore[operator]
