"""The clock of the training loop: the device's time of each step, the host's time to hand it over, the wait for data.

On CUDA two events lie around each step and nothing waits inside the span; they are read when all steps are done.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from runner.record import Speed

# A median over fewer steps says more about start-up than about training.
LEAST_STEADY_STEPS = 8


@dataclass
class Clock:
    """Times of the steps taken so far. `now` is the host's clock in seconds; `event` makes a recorded device event."""

    event: Callable[[], Any] | None
    now: Callable[[], float] = time.perf_counter
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    _spans: list[tuple[Any, Any]] = field(default_factory=list)
    _enqueue_s: list[float] = field(default_factory=list)
    _wait_s: list[float] = field(default_factory=list)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around the fetching of a batch."""
        start = self.now()
        yield
        self._wait_s.append(self.now() - start)

    @contextmanager
    def step(self, shape: tuple[int, ...]) -> Iterator[None]:
        """Around exactly one training step on inputs of this shape."""
        if self.event and self._spans:
            # Let the host run at most one step ahead: with a full queue it would wait inside the span, and its time
            # to enqueue could not be told from the device's time. The device still has a step to work on.
            self._spans[-1][0].synchronize()
        begin = self.event() if self.event else None
        start = self.now()
        yield
        self._enqueue_s.append(self.now() - start)
        self._spans.append((begin, self.event() if self.event else None))
        self.shapes.append(shape)

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return len(self.shapes)

    def read(self) -> "StepTimes":
        """The times of all steps. Waits for the device; call it after the loop."""
        enqueue_ms = np.array(self._enqueue_s, dtype=np.float64) * 1000
        step_ms = enqueue_ms
        if self.event and self._spans:
            self._spans[-1][1].synchronize()
            step_ms = np.array([begin.elapsed_time(end) for begin, end in self._spans], dtype=np.float64)
        kinds = {shape: index for index, shape in enumerate(dict.fromkeys(self.shapes))}
        shape = np.array([kinds[one] for one in self.shapes], dtype=np.int64)
        return StepTimes(step_ms, enqueue_ms, np.array(self._wait_s[: self.steps]) * 1000, shape)


def recorded_event() -> Any:
    """A CUDA event at this point of the current stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Per step, float64 (n,) in milliseconds; `shape` int64 (n,) counts input shapes in order of appearance."""

    step_ms: np.ndarray
    enqueue_ms: np.ndarray
    wait_ms: np.ndarray
    shape: np.ndarray

    def first_of_shape(self) -> np.ndarray:
        """Bool (n,): whether a step was the first of its input shape, the one that pays for start-up and tuning."""
        first = np.zeros(len(self.shape), dtype=bool)
        first[np.unique(self.shape, return_index=True)[1]] = True
        return first

    def speed(self, batch_size: int, **seconds: Any) -> Speed:
        """The figures of one trial; `seconds` are the fields of Speed that are measured elsewhere."""
        first = self.first_of_shape()
        steady = ~first
        enough = int(steady.sum()) >= LEAST_STEADY_STEPS
        step_ms = float(np.median(self.step_ms[steady])) if enough else None
        return Speed(
            steps=len(self.step_ms),
            first_step_ms=float(self.step_ms[0]),
            step_ms=step_ms,
            enqueue_ms=float(np.median(self.enqueue_ms[steady])) if enough else None,
            wait_ms=float(np.median(self.wait_ms[steady])) if enough else None,
            new_shapes_ms=[float(value) for value in self.step_ms[first][1:]],
            samples_per_s=batch_size * 1000 / step_ms if step_ms else None,
            **seconds,
        )
