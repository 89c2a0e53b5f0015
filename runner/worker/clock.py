"""The clock of the training loop: the device's time of each step, the host's time to hand it over, the wait for data.

On CUDA two events lie around each step and nothing waits inside the span; they are read when all steps are done. The
first step is also told by what was read from disk in it, the others by the energy that the device used.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from runner.worker.compile_time import CompileTime
from runner.worker.step_times import StepTimes

LEAST_ENERGY_S = 1.0  # a device updates its count of joules some ten times a second


def read_bytes() -> int | None:
    """What this process has had read from the disk so far, by all of its threads; None where nobody counts it."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("read_bytes:"))
    except (OSError, StopIteration):
        return None


@dataclass
class Clock:
    """Times of the steps taken so far. `now` is the host's clock in seconds; `event` makes a recorded device event.

    `energy_j` reads what the device has used so far, `disk` what the process has had read; `compiling` is entered for
    each step.
    """

    event: Callable[[], Any] | None
    now: Callable[[], float] = time.perf_counter
    energy_j: Callable[[], float | None] | None = None
    disk: Callable[[], int | None] = read_bytes
    compiling: CompileTime | None = None
    shapes: list[tuple[Any, ...]] = field(default_factory=list)
    _spans: list[tuple[Any, Any]] = field(default_factory=list)
    _enqueue_s: list[float] = field(default_factory=list)
    _wait_s: list[float] = field(default_factory=list)
    _disk: list[int | None] = field(default_factory=list)  # before and after the first step
    _energy: list[tuple[float, float | None]] = field(default_factory=list)  # after the first and the last step

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around the fetching of a batch."""
        start = self.now()
        yield
        self._wait_s.append(self.now() - start)

    @contextmanager
    def step(self, shape: tuple[Any, ...]) -> Iterator[None]:
        """Around exactly one training step on inputs of this shape."""
        if self.event and self._spans:
            # Let the host run at most one step ahead: with a full queue it would wait inside the span, and its time
            # to enqueue could not be told from the device's time. The device still has a step to work on.
            self._spans[-1][0].synchronize()
        if self.steps == 0:
            self._disk = [self.disk()]
        elif self.steps == 1 and self.energy_j:
            self._read_energy()
        with self.compiling or nullcontext():
            begin = self.event() if self.event else None
            start = self.now()
            yield
            done = self.now()
            span = (begin, self.event()) if self.event else (start, done)
        self._enqueue_s.append(done - start)
        self._spans.append(span)
        self.shapes.append(shape)
        if self.steps == 1:
            self._disk.append(self.disk())

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return len(self.shapes)

    def stop(self) -> None:
        """Wait for the end of the last step and read the energy. Whoever looks at the device now sees it still hot."""
        self._wait()
        if len(self._energy) == 1:
            self._read_energy()

    def read(self) -> StepTimes:
        """The times of all steps. Waits for the device; call it after the loop."""
        self.stop()
        enqueue_ms = np.array(self._enqueue_s, dtype=np.float64) * 1000
        step_ms = enqueue_ms
        if self.event:
            step_ms = np.array([begin.elapsed_time(end) for begin, end in self._spans], dtype=np.float64)
        kinds = {shape: index for index, shape in enumerate(dict.fromkeys(self.shapes))}
        shape = np.array([kinds[one] for one in self.shapes], dtype=np.int64)
        return StepTimes(
            step_ms,
            enqueue_ms,
            np.array(self._wait_s[: self.steps]) * 1000,
            shape,
            first_step_read_bytes=self._first_step_read_bytes(),
            rest_energy_j=self._rest_energy_j(),
            compile_s=self.compiling.seconds if self.compiling else None,
        )

    def rest_s(self) -> float:
        """Seconds from the start of the second step to the end of the last, with all that lies between them. Waits.

        Before the second step the energy is read, for which the device stands still.
        """
        self._wait()
        start, end = self._spans[1][0], self._spans[-1][1]
        return float(start.elapsed_time(end) / 1000 if self.event else end - start)

    def _wait(self) -> None:
        if self.event and self._spans:
            self._spans[-1][1].synchronize()

    def _read_energy(self) -> None:
        """Read it when all steps so far are done: the device runs on while the host counts."""
        assert self.energy_j
        self._wait()
        self._energy.append((self.now(), self.energy_j()))

    def _first_step_read_bytes(self) -> int | None:
        before, after = self._disk if len(self._disk) == 2 else (None, None)
        return None if before is None or after is None else after - before

    def _rest_energy_j(self) -> float | None:
        if len(self._energy) < 2:
            return None
        (start, before), (end, after) = self._energy
        if before is None or after is None or end - start < LEAST_ENERGY_S or after < before:  # a reset counter
            return None
        return after - before


def recorded_event() -> Any:
    """A CUDA event at this point of the current stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
