"""The training loop. Straight, so that a reader sees what is timed and what is not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from runner.data.nested import form, tensors
from runner.errors import Refusal
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.digest import digest, lanes, text
from runner.worker.poke import poke
from runner.worker.probe import NO_PROBE, Probe
from runner.worker.telling import Telling
from runner.worker.update import Update

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
# What the cells of older studies do not say.
NEUTRAL = {
    "nesterov": False,
    "bias_factor": 1.0,
    "warmup_steps": 0,
    "poke": "none",
    "clip_norm": None,
    "keep_logits": False,
}


@dataclass
class Trained:
    """What the loop leaves, all of it still on the device.

    losses: scalars, one a step; data: int64 (2,) lanes of each step's inputs and targets; weights: the same of the
    weights after steps 1, 2, 4, 8, ...; evaluations: what `evaluate` returned, by step.
    """

    losses: list[Tensor] = field(default_factory=list)
    data: list[Tensor] = field(default_factory=list)
    weights: dict[int, Tensor] = field(default_factory=dict)
    evaluations: dict[int, Any] = field(default_factory=dict)

    def digests(self, model: nn.Module) -> tuple[str, dict[str, str]]:
        """The digest of the weights as they are now, and those of the weights after steps 1, 2, 4, 8, ..."""
        final = weights(model)
        return digest(final), {str(step): text(words, final) for step, words in self.weights.items()}

    def not_finite(self, model: nn.Module) -> str | None:
        """That a parameter is no finite number, or None; a buffer may be infinite by design (a mask)."""
        finite = all(bool(torch.isfinite(tensor).all()) for tensor in model.parameters())
        return None if finite else "a weight is not finite after the last step"


def autocast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """The precision of everything within: automatic to `dtype`, or nothing done with None."""
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not None)


def train_model(
    model: nn.Module,
    task: Task,
    batches: Iterator[tuple[Any, Any]],
    config: dict[str, Any],
    steps: int,
    clock: Clock,
    evaluate: Callable[[], Any],
    probe: Probe = NO_PROBE,
    number: int = 0,
    telling: Telling | None = None,
) -> Trained:
    """Train for `steps` steps; `evaluate` is called every train.evaluate_every of them, outside the timed span.

    `number` is the trial's: it decides which weight train.poke changes. `telling` hears of each step, between two.
    """
    train, dtype = NEUTRAL | config["train"], AUTOCAST.get(config["precision"]["name"])
    poked, device = poked_step(train, steps), next(model.parameters()).device
    update, trained = Update.of(model, task, train, steps, scaled=dtype is torch.float16), Trained()
    for step in range(1, steps + 1):
        with clock.waiting():
            inputs, targets = next(batches)
            inputs = laid_out(inputs, dtype)
        trained.data.append(lanes(tensors([inputs, targets])))
        if step == 1:
            task.check_data(targets)
        if step == poked:
            poke(model, train["poke"], train["poke_factor"], number)
        with clock.step(form(inputs)), probe.step(step):
            update.optimizer.zero_grad(set_to_none=True)
            with autocast(device, dtype):
                outputs = task.forward(model, inputs, targets)
                loss = task.first_loss(outputs, targets) if step == 1 else task.loss(outputs, targets)
            update(loss, probe)
        trained.losses.append(loss.detach().reshape(()))  # stays on the device: reading it would wait for the GPU
        if step == 1:
            with autocast(device, dtype):
                task.check_metrics(outputs, targets)
        if telling:
            telling.reached(step, trained.losses[-1])
        if step & (step - 1) == 0:
            trained.weights[step] = lanes(weights(model))
        if train["evaluate_every"] and step % train["evaluate_every"] == 0 and step < steps:
            trained.evaluations[step] = evaluate()
    return trained


def poked_step(train: dict[str, Any], steps: int) -> int | None:
    """Before which step a weight is changed, if any. Raises Refusal where there is no such step."""
    if train["poke"] == "none":
        return None
    if train["poke_step"] > steps:  # epochs are steps only where the data are known
        raise Refusal(f"train.poke_step={train['poke_step']}: this training has {steps} steps; choose at most {steps}")
    return int(train["poke_step"])


def laid_out(inputs: Any, dtype: torch.dtype | None) -> Any:
    """Images in half precision take channels_last, as their model does; everything else stays as it is."""
    images = dtype and isinstance(inputs, Tensor) and inputs.dim() == 4
    return inputs.contiguous(memory_format=torch.channels_last) if images else inputs


def weights(model: nn.Module) -> list[Tensor]:
    """Everything that training changes: parameters and buffers, in the order of a state dict.

    Not the state dict itself: a model may have its own, which leaves some out, and none has buffers with
    persistent=False.
    """
    own = [*model._parameters.values(), *model._buffers.values()]
    # One that takes its shape from the first batch cannot be detached before that.
    found = [one if is_lazy(one) else one.detach() for one in own if one is not None]
    return [*found, *(one for child in model._modules.values() if child is not None for one in weights(child))]
