"""How a loss changes the weights: the optimizer, the schedule of its learning rate, the scaling of gradients."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR

from runner.errors import Refusal
from runner.worker.contract import Task
from runner.worker.probe import Probe


@dataclass(frozen=True, eq=False)
class Update:
    """How a loss changes a model's weights."""

    model: nn.Module
    optimizer: Optimizer
    scaler: torch.amp.GradScaler
    schedule: Any
    clip_norm: float | None

    @classmethod
    def of(cls, model: nn.Module, task: Task, train: dict[str, Any], steps: int, scaled: bool) -> "Update":
        """As `train` says; with `scaled` losses are multiplied, or the gradients of fp16 would vanish."""
        device = next(model.parameters()).device
        scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        # Only a fused optimizer looks for infinities on the device; with any other the scaler waits in every step.
        optimizer = make_optimizer(model, train, fused=True if scaler.is_enabled() and device.type == "cuda" else None)
        return cls(model, optimizer, scaler, scheduler_of(task, optimizer, train, steps), train["clip_norm"])

    def __call__(self, loss: Tensor, probe: Probe) -> None:
        """Take the gradients, the optimizer's step and the schedule's."""
        self.scaler.scale(loss).backward()
        with probe.optimizing():
            if self.clip_norm is not None:
                self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.schedule:
            self.schedule.step()


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
    scheduler = task.own_scheduler(optimizer, steps)
    if not callable(getattr(scheduler, "step", None)):
        raise Refusal(f"the model's make_scheduler gave a {type(scheduler).__name__}: it has to return what has step()")
    return scheduler
