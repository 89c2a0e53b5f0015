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
    `samples_per_s` leaves the first batch out and is None when there is no other.
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
    evaluation, found, counts, times = Evaluation(view, classes, device), [], [], [time.perf_counter()]
    was_training = model.training
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with untouched(), torch.random.fork_rng(devices), torch.no_grad():
        for inputs, targets in batches:
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                outputs = model(laid_out(inputs, dtype))
            evaluation.update(outputs, targets)
            found.append(predicted(view, outputs))
            counts.append(len(inputs))
            if len(counts) == 1:
                wait(device)
                times.append(time.perf_counter())
    metrics = evaluation.compute()
    wait(device)
    times.append(time.perf_counter())
    model.train(was_training)
    every = torch.cat(found)
    stride = -(-every.numel() // KEPT_PREDICTIONS)
    return Evaluated(
        metrics=metrics,
        predictions=every[::stride].cpu().numpy(),
        lanes=lanes([every]),
        evaluate_s=times[-1] - times[0],
        samples_per_s=sum(counts[1:]) / (times[-1] - times[1]) if len(counts) > 1 else None,
    )


def wait(device: torch.device) -> None:
    """Wait until the device has done everything it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
