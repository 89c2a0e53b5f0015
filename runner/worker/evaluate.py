"""Evaluation on the test set: never timed with training, and never in the way of its random streams."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from runner.data.rng import untouched
from runner.worker.digest import lanes
from runner.worker.task import Evaluation, predicted
from runner.worker.train import laid_out

KEPT_PREDICTIONS = 65536


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The figures of one evaluation by name, and what was predicted.

    lanes: int64 (2,), the digest of all predictions; predictions: at most 65536 of them, evenly spread.
    `samples_per_s` leaves the first batch of each input shape out, which pays for tuning and compiling, and is None
    when there is no other.
    """

    metrics: dict[str, float]
    predictions: np.ndarray
    lanes: Tensor
    evaluate_s: float
    samples_per_s: float | None


def evaluate(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    view: str,
    classes: int,
    device: torch.device,
    dtype: torch.dtype | None,
) -> Evaluated:
    """Evaluate in inference mode of the layers, with every random generator put back afterwards."""
    evaluation, found, shapes, rate = Evaluation(view, classes, device), [], set(), Rate(device)
    was_training, start = model.training, time.perf_counter()
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with untouched(), torch.random.fork_rng(devices), torch.no_grad():
        for inputs, targets in batches:
            new = inputs.shape not in shapes
            if new:
                rate.pause()
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                outputs = model(laid_out(inputs, dtype))
            evaluation.update(outputs, targets)
            # A copy: a forecast's values are the outputs themselves, which a CUDA graph overwrites with the next batch.
            found.append(predicted(view, outputs).clone())
            if new:
                shapes.add(inputs.shape)
                rate.resume()
            else:
                rate.samples += len(inputs)
    rate.pause()
    metrics = evaluation.compute()
    evaluate_s = time.perf_counter() - start
    model.train(was_training)
    every = torch.cat(found)
    stride = -(-every.numel() // KEPT_PREDICTIONS)
    return Evaluated(
        metrics=metrics,
        predictions=every[::stride].cpu().numpy(),
        lanes=lanes([every]),
        evaluate_s=evaluate_s,
        samples_per_s=rate.samples / rate.seconds if rate.samples else None,
    )


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
