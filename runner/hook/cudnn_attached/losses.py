"""The losses, where they can be seen: the single numbers whose backward() is called."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Losses:
    """The losses of the step at work, and one number for each step so far: their sum, NaN where none was seen.

    `touched` is called when a step's work is seen to begin, `done` when a backward() of it returns.
    """

    def __init__(self, mine: Callable[[], bool], touched: Callable[[], None], done: Callable[[], None]):
        self.mine, self.touched, self.done, self.running = mine, touched, done, False  # running: within backward()
        self.at_work: list[Tensor] = []
        self.of_steps: list[Tensor] = []
        self.unseen: list[int] = []  # steps, from 1

    def watch(self) -> None:
        """From now on."""
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def watched(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if self.mine():
                self.touched()
                self._add((tensors,) if isinstance(tensors, Tensor) else tensors)
            self.running = True
            try:
                backward(tensors, *args, **kwargs)
            finally:
                self.running = False
            if self.mine():
                self.done()

        torch.autograd.backward = watched
        kind: Any = torch.amp.GradScaler
        scale = kind.scale

        def scale_watched(scaler: Any, outputs: Any) -> Any:
            scaled = scale(scaler, outputs)
            if isinstance(outputs, Tensor) and scaled is not outputs:
                scaled._cudnn_attached_unscaled = outputs
            return scaled

        kind.scale = scale_watched

    def _add(self, tensors: Any) -> None:
        for one in tensors:
            if isinstance(one, Tensor) and one.numel() == 1:
                self.at_work.append(getattr(one, "_cudnn_attached_unscaled", one).detach())

    def step_done(self) -> None:
        """The step has had all its losses."""
        numbers = [one.float().reshape(()) for one in self.at_work] or [torch.tensor(float("nan"))]
        self.of_steps.append(functools.reduce(torch.add, numbers))
        if not self.at_work:
            self.unseen.append(len(self.of_steps))
        self.at_work = []

    def read(self) -> Tensor:
        """One number for each step: float32 (n,) on the CPU. Waits for the device."""
        return torch.stack([one.cpu() for one in self.of_steps]) if self.of_steps else torch.zeros(0)
