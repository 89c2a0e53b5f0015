"""The training loop. Straight, so that a reader sees what is timed and what is not."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR

from runner.data.nested import form, tensors
from runner.errors import Refusal
from runner.worker.clock import Clock
from runner.worker.contract import Task, task_of
from runner.worker.digest import digest, lanes, text
from runner.worker.poke import poke
from runner.worker.probe import NO_PROBE, Probe
from runner.worker.telling import Telling

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


def make_optimizer(model: nn.Module, train: dict[str, Any], fused: bool | None = None) -> Optimizer:
    """SGD with momentum, Adam, or AdamW, as `train` says; `fused` None leaves the implementation to PyTorch."""
    common = {"lr": train["learning_rate"], "weight_decay": train["weight_decay"], "fused": fused}
    groups = parameter_groups(model, train["learning_rate"], train["bias_factor"])
    if train["optimizer"] == "sgd":
        return SGD(groups, momentum=train["momentum"], nesterov=train["nesterov"], **common)
    return (Adam if train["optimizer"] == "adam" else AdamW)(groups, **common)


def parameter_groups(model: nn.Module, learning_rate: float, bias_factor: float) -> list[dict[str, Any]]:
    """All parameters in one group, or those of at most one dimension in another, with `bias_factor` times the rate."""
    parameters = list(model.parameters())
    if bias_factor == 1:
        return [{"params": parameters}]
    flat = {"params": [one for one in parameters if one.dim() <= 1], "lr": bias_factor * learning_rate}
    return [{"params": [one for one in parameters if one.dim() > 1]}, flat]


def make_schedule(optimizer: Optimizer, train: dict[str, Any], steps: int) -> LRScheduler | None:
    """What train.schedule makes of the learning rate, None for a constant; below it a warm-up, if there is one.

    The warm-up is Summers and Dinneen's (ICML 2021): a line from 0 at the first step that ends where the rest goes on
    as if there had been none.
    """
    kind, warmup = train["schedule"], train["warmup_steps"]
    if kind == "constant" and not warmup:
        return None
    if kind == "cosine" and not warmup:
        return CosineAnnealingLR(optimizer, T_max=steps)  # which rounds otherwise: studies so far have its bits
    if kind == "one_cycle":
        return OneCycleLR(optimizer, [group["lr"] for group in optimizer.param_groups], total_steps=steps)
    return LambdaLR(optimizer, lambda step: step / warmup if step < warmup else decayed(train, step, steps))


def decayed(train: dict[str, Any], step: int, steps: int) -> float:
    """What is left of the learning rate when so many of the steps are done."""
    if train["schedule"] == "step":
        return float(train["decay_factor"] ** (step // train["decay_every"]))
    progress = step / steps
    left = {"constant": 1.0, "cosine": (1 + math.cos(math.pi * progress)) / 2, "linear": 1 - progress}
    return left[train["schedule"]]


def scheduler_of(task: Task, optimizer: Optimizer, train: dict[str, Any], steps: int) -> Any:
    """The model's own scheduler, or what the settings say. Raises Refusal where there would be both."""
    if task.own_scheduler is None:
        return make_schedule(optimizer, train, steps)
    if train["schedule"] != "constant" or train["warmup_steps"]:
        raise Refusal("the model has a make_scheduler: train.schedule=constant and train.warmup_steps=0 go with it")
    return task.own_scheduler(optimizer, steps)


def train_model(
    model: nn.Module,
    batches: Iterator[tuple[Any, Any]],
    config: dict[str, Any],
    steps: int,
    classes: int,
    clock: Clock,
    evaluate: Callable[[], Any],
    probe: Probe = NO_PROBE,
    number: int = 0,
    telling: Telling | None = None,
    brought: Any = None,
) -> Trained:
    """Train for `steps` steps; `evaluate` is called every train.evaluate_every of them, outside the timed span.

    `number` is the trial's: it decides which weight train.poke changes. `telling` hears of each step, between two.
    `brought` is a user's own training set, which may bring the loss.
    """
    train, task = NEUTRAL | config["train"], task_of(model, config["dataset"]["view"], classes, brought)
    if train["poke"] != "none" and train["poke_step"] > steps:  # epochs are steps only where the data are known
        raise Refusal(f"train.poke_step={train['poke_step']}: this training has {steps} steps; choose at most {steps}")
    dtype = AUTOCAST.get(config["precision"]["name"])
    device = next(model.parameters()).device
    scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)
    # Only a fused optimizer looks for infinities on the device; with any other the scaler waits for it in every step.
    optimizer = make_optimizer(model, train, fused=True if scaler.is_enabled() and device.type == "cuda" else None)
    schedule = scheduler_of(task, optimizer, train, steps)
    trained = Trained()
    for step in range(1, steps + 1):
        with clock.waiting():
            inputs, targets = next(batches)
            inputs = laid_out(inputs, dtype)
        trained.data.append(lanes(tensors([inputs, targets])))
        if step == 1:
            task.check_data(targets)
        if train["poke"] != "none" and step == train["poke_step"]:
            poke(model, train["poke"], train["poke_factor"], number)
        with clock.step(form(inputs)), probe.step(step):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                outputs = task.forward(model, inputs, targets)
                loss = task.first_loss(outputs, targets) if step == 1 else task.loss(outputs, targets)
            scaler.scale(loss).backward()
            with probe.optimizing():
                if train["clip_norm"] is not None:
                    scaler.unscale_(optimizer)
                    nn.utils.clip_grad_norm_(model.parameters(), train["clip_norm"])
                scaler.step(optimizer)
                scaler.update()
            if schedule:
                schedule.step()
        trained.losses.append(loss.detach().reshape(()))  # stays on the device: reading it would wait for the GPU
        if step == 1:
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                task.check_metrics(outputs, targets)
        if telling:
            telling.reached(step, trained.losses[-1])
        if step & (step - 1) == 0:
            trained.weights[step] = lanes(weights(model))
        if train["evaluate_every"] and step % train["evaluate_every"] == 0 and step < steps:
            trained.evaluations[step] = evaluate()
    return trained


def laid_out(inputs: Any, dtype: torch.dtype | None) -> Any:
    """Images in half precision take channels_last, as their model does; everything else stays as it is."""
    images = dtype and isinstance(inputs, Tensor) and inputs.dim() == 4
    return inputs.contiguous(memory_format=torch.channels_last) if images else inputs


def weights(model: nn.Module) -> list[Tensor]:
    """Everything that training changes: parameters and buffers, in the order of the state dict."""
    return list(model.state_dict().values())
