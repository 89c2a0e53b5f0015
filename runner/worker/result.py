"""From what lies on the device after training to what goes to disk."""

import resource
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from runner.record import Digests, Outcome
from runner.series import Series
from runner.worker.clock import StepTimes
from runner.worker.digest import digest, lanes, sketch, text
from runner.worker.train import Trained, weights


@dataclass(frozen=True)
class Result:
    """What a training that came to its end leaves: its outcome, its series and the record's figures by field."""

    outcome: Outcome
    reason: str | None
    series: Series
    figures: dict[str, Any]


def result_of(
    model: nn.Module,
    trained: Trained,
    times: StepTimes,
    initial: str,
    batch_size: int,
    memory: dict[str, int | None],
    **seconds: float,
) -> Result:
    """Gather a finished training; the last evaluation is the one at the end."""
    last = trained.evaluations[max(trained.evaluations)]
    losses = torch.stack(trained.losses)
    final = weights(model)
    figures = {
        "digests": Digests(
            initial=initial,
            data=text(lanes(trained.data)),
            losses=digest([losses]),
            final=digest(final),
            metrics=digest([torch.tensor(list(last.metrics.values()), dtype=torch.float64)]),
            predictions=text(last.lanes),
            steps={str(step): text(words, final) for step, words in trained.weights.items()},
        ),
        "metrics": last.metrics,
        "speed": times.speed(
            batch_size, evaluate_s=last.evaluate_s, evaluate_samples_per_s=last.samples_per_s, **seconds
        ),
        "memory": memory,
    }
    outcome, reason = _outcome(losses, list(model.parameters()))
    return Result(outcome, reason, _series(trained, times, losses, final), figures)


def _outcome(losses: Tensor, parameters: list[Tensor]) -> tuple[Outcome, str | None]:
    """Diverged if a loss or a final parameter is no finite number; a buffer may be infinite by design (a mask)."""
    finite = torch.isfinite(losses).cpu()
    if not finite.all():
        return "diverged", f"the loss is {losses[~finite][0].item()} at step {int((~finite).nonzero()[0]) + 1}"
    if not all(bool(torch.isfinite(tensor).all()) for tensor in parameters):
        return "diverged", "a weight is not finite after the last step"
    return "finished", None


def _series(trained: Trained, times: StepTimes, losses: Tensor, final: list[Tensor]) -> Series:
    evaluations = trained.evaluations
    names = list(evaluations[max(evaluations)].metrics)
    steps = sorted(evaluations)
    return Series(
        step_ms=times.step_ms,
        enqueue_ms=times.enqueue_ms,
        wait_ms=times.wait_ms,
        shape=times.shape,
        loss=losses.cpu().numpy(),
        data=torch.stack(trained.data).cpu().numpy(),
        predictions=evaluations[max(evaluations)].predictions,
        sketch=sketch(final).numpy(),
        evaluated=np.array(steps, dtype=np.int64),
        evaluations=np.array([[evaluations[step].metrics[name] for name in names] for step in steps]),
        evaluation_names=np.array(names),
    )


def peak_memory(device: torch.device) -> dict[str, int | None]:
    """Peak bytes since the process began: what the allocator gave out and held on CUDA, and what the host held."""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if device.type != "cuda":
        return {**peak, "peak_allocated_bytes": None, "peak_reserved_bytes": None}
    return {
        **peak,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(device),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(device),
    }
