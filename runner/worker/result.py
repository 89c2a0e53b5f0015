"""From what lies on the device after training to what goes to disk."""

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from runner.logits import Logits
from runner.record import Digests, Outcome
from runner.series import Series
from runner.worker.calls import Called
from runner.worker.digest import digest, lanes, sketch, text
from runner.worker.infer import Answered
from runner.worker.step_times import StepTimes
from runner.worker.train import Trained, weights


@dataclass(frozen=True)
class Result:
    """What a trial whose steps came to their end leaves: its outcome, its series and the record's figures by field.

    `logits` are those of the last evaluation, where they are kept.
    """

    outcome: Outcome
    reason: str | None
    series: Series
    figures: dict[str, Any]
    logits: Logits | None = None


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
    return Result(outcome, reason, _series(left, times, losses, weights(model)), figures, last.logits)


def result_of_calls(
    called: Called,
    inputs: Sequence[Tensor],
    times: StepTimes,
    initial: str,
    batch_size: int,
    memory: dict[str, int | None],
    **measured: float | None,
) -> Result:
    """Gather what many calls have left: there are no losses (NaN in the series), no predictions and no evaluation."""
    final, steps = called.digests()
    data = [lanes([one]) for one in inputs]
    shapes = called.calls.shapes
    measured |= {
        "first_step_ms": shapes[0].first_ms,
        "first_step_read_bytes": called.first_read_bytes,
        "steps_s": called.calls.cold.done_s,
        **{"evaluate_s": 0.0, "evaluate_samples_per_s": None},
    }
    figures = {
        "digests": Digests(initial, text(lanes(data)), "", final, "", "", steps),
        "speed": times.speed(batch_size, new_shapes_ms=[one.first_ms for one in shapes[1:]], **measured),
        "memory": memory,
        "calls": called.calls,
    }
    outcome: Outcome = "diverged" if called.not_finite else "finished"
    every = torch.stack(data).cpu().numpy()[np.arange(len(times.step_ms)) % len(data)]
    no_loss = np.full(len(times.step_ms), np.nan, dtype=np.float32)
    return Result(outcome, called.not_finite, times.series(no_loss, every, np.zeros(1, np.float32)), figures)


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
    return times.series(
        loss=losses.cpu().numpy(),
        data=torch.stack(left.data).cpu().numpy(),
        sketch=sketch(final).numpy(),
        predictions=evaluations[max(evaluations)].predictions,
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
