"""One training from flags to figures: the order of these lines is the method."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runner import data as datasets
from runner.data import Data, batches
from runner.data.data import described, parts_of
from runner.data.residence import place
from runner.errors import Refusal
from runner.record import Digests
from runner.target import source_digest
from runner.trial import Trial
from runner.worker import covariates, flags
from runner.worker.build import build_model, compiled
from runner.worker.calls import call_many
from runner.worker.clock import Clock, recorded_event
from runner.worker.compile_time import compile_time, own_cache
from runner.worker.contract import Task, task_of
from runner.worker.digest import digest
from runner.worker.environment import environment
from runner.worker.evaluate import Evaluated, evaluate
from runner.worker.infer import Answered, answer, stream, streamed
from runner.worker.probe import NO_PROBE, Probe, last_call_probe, probe_of
from runner.worker.result import Result, digests_of, peak_memory, result_of, result_of_calls
from runner.worker.seeding import seed_everything
from runner.worker.seen import Seen
from runner.worker.synchronizing import Synchronizing
from runner.worker.telling import Telling, loss_reader
from runner.worker.train import AUTOCAST, Trained, train_model, weights


def session(trial: Trial, seen: Seen, told: Path) -> Result:
    """Do the trial; the file `told` says how far it has got.

    Raises Refusal for what only this process can find impossible, anything else as it comes.
    """
    others = covariates.compute_processes() if trial.device != "cpu" else {}  # this process has not started CUDA yet
    config, device = trial.config, usable(trial.device)
    seen.flags["default"] = flags.read()  # PyTorch's own: nobody has set anything yet
    seen.flags["requested"] = flags.apply(config)
    seen.flags["before"] = flags.read()
    seen.environment |= environment(device, torch.get_num_threads(), trial.exclusive)
    seen.environment |= flags.precisions(seen.flags["before"])
    start = time.perf_counter()
    data = place(datasets.load(config["dataset"]), device)
    seen.data = described(data)
    with own_cache(config["train"]["compile"]):
        work = made(trial, data, device)
        seen.environment["code"] = source_digest(config)
        card = covariates.find_card(device)
        if work.calls:
            return call(work, card, others, seen, start)
        if next(work.model.parameters(), None) is None:
            raise Refusal("the model has no parameters: there is nothing to train, and nothing to compare")
        seen.probe = probe_of(trial, work.model, device)
        clock, telling = work.clock(card), Telling(told, work.steps, loss_reader(device))
        with watched(clock, card, others, seen):
            built = time.perf_counter()
            left, measured = (
                infer(work, card, clock, seen.probe, telling)
                if work.infers
                else train(work, clock, seen.probe, telling)
            )
            clock.stop()
        train_s = time.perf_counter() - built - sum(one.evaluate_s for one in left.evaluations.values())
        memory = peak_memory(device)
        seen.flags["after"] = flags.read()  # before the evaluation, in which a model may set others
        left.evaluations[work.steps] = work.evaluate(config["train"].get("keep_logits", False))
        measured |= {"build_s": built - start, "train_s": train_s}
        result = result_of(work.model, left, clock.read(), work.initial, work.batch_size, memory, **measured)
        return replace(result, figures=result.figures | {"again": trained_again(work)})


@dataclass(frozen=True, eq=False)
class Work:
    """What the steps are taken with: a trial's model and data, on their device.

    `initial` is the digest of the model's weights before the first step.
    """

    trial: Trial
    model: nn.Module
    data: Data
    device: torch.device
    initial: str

    @cached_property
    def task(self) -> Task:
        """What is made of the model's outputs. Raises Refusal where that is not clear: calls need none of it."""
        return task_of(self.model, self.data.view, self.data.classes, self.data.brought)

    @property
    def infers(self) -> bool:
        """Whether a step answers a batch instead of training on it."""
        return self.trial.config.get("phase") == "infer"

    @property
    def calls(self) -> bool:
        """Whether a step is a call of the model, and nothing else."""
        return self.trial.config.get("phase") == "calls"

    @property
    def batch_size(self) -> int:
        """Samples of each step."""
        return int(self.trial.config["train"]["batch_size"])

    @property
    def steps(self) -> int:
        """How many steps to take: as given, or from the number of epochs."""
        train = self.trial.config["train"]
        return int(train["steps"] or train["epochs"] * batches.steps_per_epoch(self.data, self.batch_size))

    def batches(self, steps: int | None = None) -> Iterator[tuple[Any, Any]]:
        """The trial's training batches, from the first one; `steps` of them, or as many as there are to take."""
        seeds = {"order_seed": self.trial.seeds["order"], "augment_seed": self.trial.seeds["augment"]}
        return batches.train_batches(self.data, self.batch_size, steps or self.steps, self.device, **seeds)

    def evaluate(self, keep_logits: bool = False) -> Evaluated:
        """Evaluate the model as it is now."""
        test = batches.test_batches(self.data, self.batch_size, self.device)
        dtype = AUTOCAST.get(self.trial.config["precision"]["name"])
        sizes = batches.test_sizes(self.data, self.batch_size)
        return evaluate(self.model, self.task, test, self.device, dtype, keep_logits, sizes)

    def clock(self, card: covariates.Card | None) -> Clock:
        """A clock for one pass over the batches. It reads no energy where evaluations would be in it."""
        train = self.trial.config["train"]
        alone = self.infers or self.calls or not train["evaluate_every"]
        cuda = self.device.type == "cuda"
        return Clock(
            recorded_event if cuda else None,
            energy_j=covariates.energy_reader(card) if alone else None,
            compiling=compile_time(train["compile"]),
            synchronizing=Synchronizing() if cuda else None,
        )


def made(trial: Trial, data: Data, device: torch.device) -> Work:
    """The model as its seed makes it, and every random generator where the first step finds it."""
    config = trial.config
    seed_everything(trial.seeds["init"])
    model = on_device(build_model(config["model"], data), device, config)
    initial = digest(weights(model))
    work = Work(trial, compiled(model, config["train"]["compile"]), data, device, initial)
    seed_everything(trial.seeds["dropout"])
    return work


def train(
    work: Work, clock: Clock, probe: Probe, telling: Telling | None = None
) -> tuple[Trained, dict[str, float | None]]:
    """Train; there is nothing that the clock does not measure."""
    trial, source = work.trial, work.batches()
    left = train_model(
        work.model, work.task, source, trial.config, work.steps, clock, work.evaluate, probe, trial.number, telling
    )
    return left, {}


def trained_again(work: Work) -> list[Digests]:
    """Train from the same state in this same process, as often as is asked beside the first time.

    Only the model, its optimizer and the random generators begin anew. What lasts as long as a process stays: flags,
    data, the plans that cuDNN has tuned, whatever a user's model keeps in globals.
    """
    again = []
    for _ in range(1, work.trial.config.get("repeat_in_process", 1)):
        if work.trial.config["train"]["compile"] != "off":
            torch.compiler.reset()  # every model is compiled anew, and a few are the most that may be at once
        work = made(work.trial, work.data, work.device)
        left, _ = train(work, work.clock(None), NO_PROBE)
        left.evaluations[work.steps] = work.evaluate()
        again.append(digests_of(work.model, left, work.initial))
    return again


def infer(
    work: Work, card: covariates.Card | None, clock: Clock, probe: Probe, telling: Telling
) -> tuple[Answered, dict[str, float | None]]:
    """Answer all batches for their latency, by `clock`, and then for the throughput, with a clock of its own."""
    config, streaming = work.trial.config, work.clock(card)
    answered = answer(work.model, work.task, work.batches(), config, work.steps, clock, probe, telling)
    stream(work.model, work.batches(), config, work.steps, streaming)
    return answered, streamed(streaming, work.batch_size)


def call(work: Work, card: covariates.Card | None, others: dict[str, int], seen: Seen, start: float) -> Result:
    """Call the model many times (phase=calls); nothing is trained, answered or evaluated. `start`: of the data."""
    config, built = work.trial.config, time.perf_counter()
    seen.probe = last_call_probe(work.trial, work.model, work.device)
    inputs = [batch for batch, _ in work.batches(len(parts_of(work.data.train)))]  # shapes come in turn: one of each
    clock = work.clock(card)
    with watched(clock, card, others, seen):
        called = call_many(work.model, inputs, config, clock, seen.probe, work.trial.seeds["dropout"])
        clock.stop()
    memory = peak_memory(work.device)
    seen.flags["after"] = flags.read()
    times = {"build_s": built - start, "train_s": called.calls.cold.done_s}
    return result_of_calls(called, inputs, clock.read(), work.initial, work.batch_size, memory, **times)


def usable(name: str) -> torch.device:
    """The device, made the current one. Raises Refusal if it is not there."""
    device = torch.device(name)
    if device.type == "cuda":
        count, index = torch.cuda.device_count(), device.index or 0
        if index >= count:
            build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
            build = f"built for ROCm {torch.version.hip}" if torch.version.hip else build
            sees = f"torch {torch.__version__} ({build}) sees {count} CUDA devices"
            raise Refusal(f"device={name}: {sees}; choose device=cpu")
        torch.cuda.set_device(index)
    return device


def on_device(model: nn.Module, device: torch.device, config: dict[str, Any]) -> nn.Module:
    """Move the model; images in half precision take channels_last, the custom there."""
    images = config["dataset"]["view"] in ("image", "mask")
    if images and config["precision"]["name"] in AUTOCAST:
        return model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
    return model.to(device)


@contextmanager
def watched(clock: Clock, card: covariates.Card | None, others: dict[str, int], seen: Seen) -> Iterator[None]:
    """Keep the device's state before and after the steps and the number of finished ones, also when one fails."""
    seen.covariates["before"] = covariates.before(card, others)
    try:
        yield
    finally:
        seen.covariates["after"] = covariates.sample(card)
        seen.steps = clock.steps
