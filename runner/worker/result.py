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
from runner.worker.infer import Answered
from runner.worker.train import Trained, weights


@dataclass(frozen=True)
class Result:
    """What a trial whose steps came to their end leaves: its outcome, its series and the record's figures by field."""

    outcome: Outcome
    reason: str | None
    series: Series
    figures: dict[str, Any]


def result_of(
    model: nn.Module,
    left: Trained | Answered,
    times: StepTimes,
    initial: str,
    batch_size: int,
    memory: dict[str, int | None],
    **measured: float | None,
) -> Result:
    """Gather what a phase has left; the last evaluation is the one at the end. `measured` are fields of Speed."""
    last = left.evaluations[max(left.evaluations)]
    losses = torch.stack(left.losses)
    figures = {
        "digests": digests_of(model, left, initial),
        "metrics": last.metrics,
        "speed": times.speed(
            batch_size, evaluate_s=last.evaluate_s, evaluate_samples_per_s=last.samples_per_s, **measured
        ),
        "memory": memory,
    }
    reason = _not_finite(losses) or left.not_finite(model)
    outcome: Outcome = "diverged" if reason else "finished"
    return Result(outcome, reason, _series(left, times, losses, weights(model)), figures)


def digests_of(model: nn.Module, left: Trained | Answered, initial: str) -> Digests:
    """The digests of what a phase has left, its last evaluation among it; `initial` is that of the initial weights."""
    last = left.evaluations[max(left.evaluations)]
    final, steps = left.digests(model)
    return Digests(
        initial=initial,
        data=text(lanes(left.data)),
        losses=digest([torch.stack(left.losses)]),
        final=final,
        metrics=digest([torch.tensor(list(last.metrics.values()), dtype=torch.float64)]),
        predictions=text(last.lanes),
        steps=steps,
    )


def _not_finite(losses: Tensor) -> str | None:
    """Which loss was the first that is no finite number, or None."""
    finite = torch.isfinite(losses).cpu()
    if finite.all():
        return None
    return f"the loss is {losses.cpu()[~finite][0].item()} at step {int((~finite).nonzero()[0]) + 1}"


def _series(left: Trained | Answered, times: StepTimes, losses: Tensor, final: list[Tensor]) -> Series:
    evaluations = left.evaluations
    names = list(evaluations[max(evaluations)].metrics)
    steps = sorted(evaluations)
    return Series(
        step_ms=times.step_ms,
        enqueue_ms=times.enqueue_ms,
        wait_ms=times.wait_ms,
        shape=times.shape,
        loss=losses.cpu().numpy(),
        data=torch.stack(left.data).cpu().numpy(),
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
