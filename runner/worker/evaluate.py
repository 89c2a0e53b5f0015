"""Evaluation on the test set: never timed with training, and never in the way of its random streams."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from runner.data.data import CUSTOM
from runner.data.nested import form
from runner.data.rng import untouched
from runner.logits import MOST_BYTES, Logits
from runner.worker.contract import OwnFigures, Task
from runner.worker.digest import lanes
from runner.worker.task import Evaluation, main_output
from runner.worker.train import autocast, laid_out

KEPT_PREDICTIONS = 65536


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The figures of one evaluation by name, and what was predicted.

    lanes: int64 (2,), the digest of all predictions; predictions: at most 65536 of them, evenly spread. Where nothing
    counts as predicted, lanes covers all outputs and predictions are empty.
    `samples_per_s` leaves the first batch of each input shape out, which pays for tuning and compiling, and is None
    when there is no other. `logits` are kept if they were asked for and take at most MOST_BYTES.
    """

    metrics: dict[str, float]
    predictions: np.ndarray
    lanes: Tensor
    evaluate_s: float
    samples_per_s: float | None
    logits: Logits | None = None


def evaluate(
    model: nn.Module,
    task: Task,
    batches: Iterable[tuple[Any, Any]],
    device: torch.device,
    dtype: torch.dtype | None,
    keep_logits: bool = False,
    sizes: Sequence[int] | None = None,
) -> Evaluated:
    """Evaluate in inference mode of the layers, with every random generator put back afterwards.

    `sizes` counts the samples of each batch, None where inputs are that long.
    """
    evaluation = Evaluation(task.view, task.classes, device) if task.view != CUSTOM else None
    own, kept, rate = OwnFigures(task), Kept(task.view, MOST_BYTES if keep_logits else 0), Rate(device)
    was_training, start = model.training, time.perf_counter()
    found: list[Tensor] = []
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with untouched(), torch.random.fork_rng(devices), torch.no_grad():
        for number, (inputs, targets) in enumerate(batches):
            samples = sizes[number] if sizes else len(inputs)
            with rate.batch(form(inputs), samples):
                with autocast(device, dtype):
                    outputs = model(laid_out(inputs, dtype))
                    own.update(outputs, targets, samples)
                if evaluation:
                    evaluation.update(main_output(outputs), targets)
                    kept.add(main_output(outputs), targets)
                found.append(task.predictions(outputs).to(device))
    rate.pause()
    metrics = (evaluation.compute() if evaluation else {}) | own.compute()
    evaluate_s = time.perf_counter() - start
    model.train(was_training)
    every = torch.cat(found)
    stride = -(-every.numel() // KEPT_PREDICTIONS)
    return Evaluated(
        metrics=metrics,
        predictions=every[::stride].cpu().numpy() if task.predicts else np.zeros(0, np.float32),
        lanes=lanes([every]),
        evaluate_s=evaluate_s,
        samples_per_s=rate.samples / rate.seconds if rate.samples else None,
        logits=kept.logits(),
    )


@dataclass
class Kept:
    """The logits of a view with classes, batch by batch, as long as they take no more than `left` bytes."""

    view: str
    left: int
    batches: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Copy a batch's as float32 (n, classes), in the order of the flattened targets."""
        self.left -= 4 * outputs.numel()
        if self.left >= 0:
            scores = outputs.movedim(-1 if self.view == "next" else 1, -1).flatten(0, -2).float().clone()
            self.batches.append((scores, targets.flatten()))

    def logits(self) -> Logits | None:
        """All of them, None if they were too many or are not wanted."""
        if not self.batches or self.left < 0:
            return None
        values, targets = (torch.cat(parts).cpu().numpy() for parts in zip(*self.batches, strict=True))
        return Logits(values, targets)


@dataclass
class Rate:
    """How many samples were evaluated in how many seconds, the first batch of each shape left out."""

    device: torch.device
    samples: int = 0
    seconds: float = 0.0
    _shapes: set[Any] = field(default_factory=set)
    _start: float | None = None

    @contextmanager
    def batch(self, shape: Any, samples: int) -> Iterator[None]:
        """Around what is done with a batch of so many samples."""
        new = shape not in self._shapes
        if new:
            self.pause()
        yield
        if new:
            self._shapes.add(shape)
            self._resume()
        else:
            self.samples += samples

    def _resume(self) -> None:
        """Count time from now on, with an idle device."""
        wait(self.device)
        self._start = time.perf_counter()

    def pause(self) -> None:
        """Count no time until the next new shape is done; what was begun is waited for and counts."""
        if self._start is not None:
            wait(self.device)
            self.seconds += time.perf_counter() - self._start
        self._start = None


def wait(device: torch.device) -> None:
    """Wait until the device has done everything it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
