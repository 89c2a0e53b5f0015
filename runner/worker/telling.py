"""Telling how far a trial has got to whoever watches: seldom, between the steps, and without waiting for the device."""

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from runner.reached import Reached

EVERY_S = 1.0
Loss = Callable[[Tensor], float | None]


class Telling:
    """Writes into a file how many of `steps` are done: at most every EVERY_S by the host's clock, and at their end.

    To be called between two steps, where nothing is timed. The file is kept open and never flushed to disk: one short
    write into memory. One that cannot be written costs nothing.
    """

    def __init__(self, path: Path, steps: int, loss: Loss, now: Callable[[], float] = time.perf_counter):
        self._steps, self._loss, self._now = steps, loss, now
        self._next_s = -math.inf
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)

    def reached(self, step: int, loss: Tensor) -> None:
        """Say that so many steps were handed over; `loss` is the last one's, on its device."""
        moment_s = self._now()
        if self._file is None or (moment_s < self._next_s and step < self._steps):
            return
        self._next_s = moment_s + EVERY_S
        with suppress(OSError):  # a full disk
            Reached(step, self._steps, self._loss(loss)).write(self._file)


class LateLoss:
    """Reads the loss that was asked for at the call before.

    To read a value on the device is to wait until all steps so far are done: the device would stand still, and the next
    step begin on an idle one. A copy into pinned memory is handed over like any other work, in its turn between two
    steps, and the event behind it tells without waiting whether it is done; only then the host looks at its own memory.
    """

    def __init__(self, copy: Tensor, copied: Any):
        self._copy, self._copied = copy, copied
        self._asked = False
        self._known: float | None = None

    def __call__(self, loss: Tensor) -> float | None:
        """Ask for a loss; returns the last one that has arrived, None before the first has."""
        if self._asked and not self._copied.query():
            return self._known
        if self._asked:
            self._known = float(self._copy)
        if loss.dtype == self._copy.dtype:  # else the device would have to convert it
            self._copy.copy_(loss, non_blocking=True)
            self._copied.record()
            self._asked = True
        return self._known


def loss_reader(device: torch.device) -> Loss:
    """How to read a loss on a device without waiting; make it before the steps: to pin memory may wait for the device.

    On the CPU the loss is there when its step is done. Of other devices than CUDA nothing is read.
    """
    if device.type == "cpu":
        return float
    if device.type == "cuda":
        return LateLoss(torch.empty((), pin_memory=True), torch.cuda.Event())
    return lambda loss: None
