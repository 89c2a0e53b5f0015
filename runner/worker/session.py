"""One training from flags to figures: the order of these lines is the method."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from runner import data as datasets
from runner.data import Data, batches
from runner.data.residence import place
from runner.errors import Refusal
from runner.target import source_digest
from runner.trial import Trial
from runner.worker import flags
from runner.worker.build import build_model, compiled
from runner.worker.clock import Clock, recorded_event
from runner.worker.digest import digest
from runner.worker.environment import environment
from runner.worker.evaluate import Evaluated, evaluate
from runner.worker.result import Result, peak_memory, result_of
from runner.worker.seeding import seed_everything
from runner.worker.seen import Seen
from runner.worker.train import AUTOCAST, train_model, weights


def session(trial: Trial, seen: Seen) -> Result:
    """Train once. Raises Refusal for what only this process can find impossible, anything else as it comes."""
    config, device = trial.config, usable(trial.device)
    torch.set_num_threads(config["threads"])
    seen.flags["requested"] = flags.apply(config)
    seen.flags["before"] = flags.read()
    seen.environment |= environment(device, torch.get_num_threads(), trial.exclusive)
    seen.environment |= flags.precisions(seen.flags["before"])
    start = time.perf_counter()
    data = place(datasets.load(config["dataset"]), device)
    seen.data = f"{data.view} data with inputs of {data.input_shape} and {data.classes} classes"
    seed_everything(trial.seeds["init"])
    model = on_device(build_model(config["model"], data), device, config)
    seen.environment["code"] = source_digest(config)
    initial = digest(weights(model))
    model = compiled(model, config["train"]["compile"])
    seed_everything(trial.seeds["dropout"])
    steps, batch_size = steps_of(config["train"], data), config["train"]["batch_size"]
    order_seed, augment_seed = trial.seeds["order"], trial.seeds["augment"]
    source = batches.train_batches(data, batch_size, steps, device, order_seed=order_seed, augment_seed=augment_seed)
    clock = Clock(recorded_event if device.type == "cuda" else None)

    def evaluate_now() -> Evaluated:
        test, dtype = batches.test_batches(data, batch_size, device), AUTOCAST.get(config["precision"]["name"])
        return evaluate(model, test, data.view, data.classes, device, dtype)

    built = time.perf_counter()
    with counting(clock, seen):
        trained = train_model(model, source, config, steps, data.classes, clock, evaluate_now)
        times = clock.read()
    train_s = time.perf_counter() - built - sum(one.evaluate_s for one in trained.evaluations.values())
    memory = peak_memory(device)
    seen.flags["after"] = flags.read()  # before the evaluation, in which a model may set others
    trained.evaluations[steps] = evaluate_now()
    return result_of(model, trained, times, initial, batch_size, memory, build_s=built - start, train_s=train_s)


def usable(name: str) -> torch.device:
    """The device, made the current one. Raises Refusal if it is not there."""
    device = torch.device(name)
    if device.type == "cuda":
        count, index = torch.cuda.device_count(), device.index or 0
        if index >= count:
            build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
            raise Refusal(f"device={name}: torch {torch.__version__} ({build}) sees {count} CUDA devices; choose cpu")
        torch.cuda.set_device(index)
    return device


def on_device(model: nn.Module, device: torch.device, config: dict[str, Any]) -> nn.Module:
    """Move the model; images in half precision take channels_last, the custom there."""
    images = config["dataset"]["view"] in ("image", "mask")
    if images and config["precision"]["name"] in AUTOCAST:
        return model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
    return model.to(device)


def steps_of(train: dict[str, Any], data: Data) -> int:
    """How many steps to train: as given, or from the number of epochs."""
    if train["steps"]:
        return int(train["steps"])
    return int(train["epochs"]) * batches.steps_per_epoch(data, train["batch_size"])


@contextmanager
def counting(clock: Clock, seen: Seen) -> Iterator[None]:
    """Keep the number of finished steps, also when one of them fails."""
    try:
        yield
    finally:
        seen.steps = clock.steps
