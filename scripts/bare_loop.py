"""The training loop that people write, on the runner's own model and data: what the runner's loop is measured against.

A program (python scripts/bare_loop.py FOLDER) and a function for a child of a forkserver (bare_loop:run). It reads
FOLDER/ask.json, {"config", "seeds", "device"} as a trial has them, and writes FOLDER/answer.json.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, AdamW

from runner import data as datasets
from runner.data import batches
from runner.data.residence import place
from runner.models.resnet import resnet
from runner.worker import flags
from runner.worker.digest import digest
from runner.worker.seeding import seed_everything


def run(folder: str) -> int:
    """Train and answer: step times in ms, s from this process's start to its first step, a digest of the weights."""
    ask = json.loads(Path(folder, "ask.json").read_text())
    config, seeds, device = ask["config"], ask["seeds"], torch.device(ask["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    torch.set_num_threads(config["threads"])
    flags.apply(config)
    data = place(datasets.load(config["dataset"]), device)
    seed_everything(seeds["init"])
    model = resnet(config["model"]["depth"], config["model"]["cifar_stem"], data.input_shape[0], data.classes).to(
        device
    )
    seed_everything(seeds["dropout"])
    steps, size = config["train"]["steps"], config["train"]["batch_size"]
    source = batches.train_batches(data, size, steps, device, order_seed=seeds["order"], augment_seed=seeds["augment"])
    to_first_step_s = time.time() - psutil.Process().create_time()
    step_ms = trained(model, source, config["train"], device)
    weights = digest(list(model.state_dict().values()))
    answer = {"step_ms": step_ms, "to_first_step_s": to_first_step_s, "weights": weights}
    Path(folder, "answer.json").write_text(json.dumps(answer))
    return 0


def trained(
    model: nn.Module, source: Iterable[tuple[Tensor, Tensor]], train: dict[str, Any], device: torch.device
) -> list[float]:
    """Train a step on each batch; every step's time in ms, by CUDA events around it, on a CPU by the host's clock."""
    common = {"lr": train["learning_rate"], "weight_decay": train["weight_decay"]}
    optimizer = (
        AdamW(model.parameters(), **common)
        if train["optimizer"] == "adamw"
        else SGD(model.parameters(), momentum=train["momentum"], **common)
    )
    spans = []
    for inputs, targets in source:
        begin = moment(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        spans.append((begin, moment(device)))
    if device.type == "cuda":
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in spans]
    return [(end - begin) * 1000 for begin, end in spans]


def moment(device: torch.device) -> Any:
    """An event at this point of the device's stream, or the host's time in s."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
