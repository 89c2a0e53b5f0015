"""Inference: the same batches answered twice, once for the latency of each answer and once for the throughput."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from runner.data.nested import form, tensors
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.digest import lanes, text
from runner.worker.evaluate import wait
from runner.worker.probe import NO_PROBE, Probe
from runner.worker.step_times import LEAST_STEADY_STEPS
from runner.worker.telling import Telling
from runner.worker.train import AUTOCAST, autocast, laid_out


@dataclass
class Answered:
    """What the first pass leaves, all of it still on the device, one entry a batch.

    losses: scalars; data and outputs: int64 (2,) lanes of inputs with targets, and of the outputs; finite: bool
    scalars, whether all outputs are finite; evaluations: by batch, as in training.
    """

    losses: list[Tensor] = field(default_factory=list)
    data: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    finite: list[Tensor] = field(default_factory=list)
    evaluations: dict[int, Any] = field(default_factory=dict)

    def digests(self, _: nn.Module) -> tuple[str, dict[str, str]]:
        """The digest of all outputs in order, and that of the outputs up to and including batch 1, 2, 4, 8, ..."""
        powers = [number for number in range(1, len(self.outputs) + 1) if number & (number - 1) == 0]
        upto = {str(number): text(lanes(self.outputs[:number])) for number in powers}
        return text(lanes(self.outputs)), upto

    def not_finite(self, _: nn.Module) -> str | None:
        """Which batch was the first with an output that is no finite number, or None."""
        finite = torch.stack(self.finite).cpu()
        return None if finite.all() else f"an output is not finite in batch {int((~finite).nonzero()[0]) + 1}"


@torch.inference_mode()
def answer(
    model: nn.Module,
    task: Task,
    batches: Iterator[tuple[Any, Any]],
    config: dict[str, Any],
    steps: int,
    clock: Clock,
    probe: Probe = NO_PROBE,
    telling: Telling | None = None,
) -> Answered:
    """Answer `steps` batches one by one: each comes to an idle device, so a step is the latency of one answer.

    Losses, digests, what `telling` does and the wait for an idle device lie outside the timed span.
    A loss that a user's model makes itself in training is not known here, and 0.
    """
    dtype, device = AUTOCAST.get(config["precision"]["name"]), _device(model)
    model.eval()
    answered = Answered()
    for step in range(1, steps + 1):
        with clock.waiting():
            inputs, targets = next(batches)
            inputs = laid_out(inputs, dtype)
        answered.data.append(lanes(tensors([inputs, targets])))
        if step == 1:
            task.check_data(targets)
        wait(device)
        with clock.step(form(inputs)), probe.step(step), autocast(device, dtype):
            outputs = model(inputs)
        with autocast(device, dtype):
            answered.losses.append(task.answer_loss(outputs, targets, first=step == 1).to(device))
        given = tensors(outputs)
        answered.outputs.append(lanes(given).to(device))
        answered.finite.append(torch.stack([torch.isfinite(one).all().to(device) for one in given]).all())
        if telling:
            telling.reached(step, answered.losses[-1])
    return answered


@torch.inference_mode()
def stream(
    model: nn.Module, batches: Iterator[tuple[Any, Any]], config: dict[str, Any], steps: int, clock: Clock
) -> None:
    """Answer `steps` batches with the next one always handed over before the last is done; call it after `answer`.

    The same batches again, so that no shape is new. What is timed as a whole includes the fetching of batches: for
    data on the device that is one indexing, for others it is their loading, as the clock's waits tell.
    """
    dtype, device = AUTOCAST.get(config["precision"]["name"]), _device(model)
    model.eval()
    wait(device)
    for _ in range(steps):
        with clock.waiting():
            inputs = laid_out(next(batches)[0], dtype)
        with clock.step(form(inputs)), autocast(device, dtype):
            model(inputs)
    clock.stop()


def streamed(clock: Clock, batch_size: int) -> dict[str, float | None]:
    """The figures of `stream`, by field of Speed: samples a second and energy a sample, from the second step on."""
    samples_per_s = batch_size * (clock.steps - 1) / clock.rest_s() if clock.steps > LEAST_STEADY_STEPS else None
    return {
        "samples_per_s": samples_per_s,
        "energy_j_per_sample": clock.read().energy_j_per_sample(batch_size),
    }


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
