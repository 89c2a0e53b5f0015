"""Evaluation on the test set: never timed with training, and never in the way of its random streams."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from runner.data.data import CUSTOM
from runner.data.nested import form
from runner.data.rng import untouched
from runner.logits import MOST_BYTES, Logits
from runner.worker.contract import OwnFigures, task_of
from runner.worker.digest import lanes
from runner.worker.task import Evaluation, main_output
from runner.worker.train import laid_out

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
    batches: Iterable[tuple[Any, Any]],
    view: str,
    classes: int,
    device: torch.device,
    dtype: torch.dtype | None,
    keep_logits: bool = False,
    brought: Any = None,
    sizes: Sequence[int] | None = None,
) -> Evaluated:
    """Evaluate in inference mode of the layers, with every random generator put back afterwards.

    `brought` is a user's own training set; `sizes` counts the samples of each batch, None where inputs are that long.
    """
    task = task_of(model, view, classes, brought)
    evaluation = Evaluation(view, classes, device) if view != CUSTOM else None
    own, found, shapes, rate = OwnFigures(task), [], set(), Rate(device)
    was_training, start = model.training, time.perf_counter()
    kept: list[tuple[Tensor, Tensor]] = []
    left = MOST_BYTES if keep_logits else 0  # bytes
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with untouched(), torch.random.fork_rng(devices), torch.no_grad():
        for number, (inputs, targets) in enumerate(batches):
            new, samples = form(inputs) not in shapes, sizes[number] if sizes else len(inputs)
            if new:
                rate.pause()
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                outputs = model(laid_out(inputs, dtype))
                own.update(outputs, targets, samples)
            if evaluation:
                evaluation.update(main_output(outputs), targets)
                left -= 4 * main_output(outputs).numel()
                if left >= 0:
                    kept.append((_scores(view, main_output(outputs)), targets.flatten()))
            found.append(task.predictions(outputs).to(device))
            if new:
                shapes.add(form(inputs))
                rate.resume()
            else:
                rate.samples += samples
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
        logits=_logits(kept) if kept and left >= 0 else None,
    )


def _scores(view: str, outputs: Tensor) -> Tensor:
    """A copy of the outputs of a view with classes as float32 (n, classes), in the order of the flattened targets."""
    return outputs.movedim(-1 if view == "next" else 1, -1).flatten(0, -2).float().clone()


def _logits(kept: list[tuple[Tensor, Tensor]]) -> Logits:
    values, targets = (torch.cat(parts).cpu().numpy() for parts in zip(*kept, strict=True))
    return Logits(values, targets)


@dataclass
class Rate:
    """How many samples were evaluated in how many seconds, pauses left out."""

    device: torch.device
    samples: int = 0
    seconds: float = 0.0
    _start: float | None = None

    def resume(self) -> None:
        """Count time from now on, with an idle device."""
        wait(self.device)
        self._start = time.perf_counter()

    def pause(self) -> None:
        """Count no time until it is resumed; what was begun is waited for and counts."""
        if self._start is not None:
            wait(self.device)
            self.seconds += time.perf_counter() - self._start
        self._start = None


def wait(device: torch.device) -> None:
    """Wait until the device has done everything it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
