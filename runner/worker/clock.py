"""The clock of the training loop: the device's time of each step, the host's time to hand it over, the wait for data.

On CUDA two events lie around each step and nothing waits inside the span; they are read when all steps are done. The
device rests after the first step and after the last: there its clock meets the host's, and its energy is read. The
first step is also told by what was read from disk in it, the second by how often it made the host wait.
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
from runner.worker.synchronizing import Synchronizing

LEAST_ENERGY_S = 1.0  # a device updates its count of joules some ten times a second


def read_bytes() -> int | None:
    """What this process has had read from the disk so far, by all of its threads; None where nobody counts it."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("read_bytes:"))
    except (OSError, StopIteration):
        return None


@dataclass(frozen=True)
class Rest:
    """A moment at which the device has nothing to do, on the host's clock and as a recorded event of the device."""

    host_s: float
    event: Any
    energy_j: float | None


@dataclass
class Clock:
    """Times of the steps taken so far. `now` is the host's clock in seconds; `event` makes a recorded device event.

    `energy_j` reads what the device has used so far, `disk` what the process has had read; `compiling` is entered for
    each step, `synchronizing` counts in the second.
    """

    event: Callable[[], Any] | None
    now: Callable[[], float] = time.perf_counter
    energy_j: Callable[[], float | None] | None = None
    disk: Callable[[], int | None] = read_bytes
    compiling: CompileTime | None = None
    synchronizing: Synchronizing | None = None
    shapes: list[tuple[Any, ...]] = field(default_factory=list)
    _spans: list[tuple[Any, Any]] = field(default_factory=list)
    _handed_s: list[tuple[float, float]] = field(default_factory=list)  # on the host's clock, from when until when
    _wait_s: list[float] = field(default_factory=list)
    _disk: list[int | None] = field(default_factory=list)  # before and after the first step
    _rests: list[Rest] = field(default_factory=list)  # after the first and the last step

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
        elif self.steps == 1:
            self._rest()
        counting = self.synchronizing.counting() if self.synchronizing and self.steps == 1 else nullcontext()
        with counting, self.compiling or nullcontext():
            begin = self.event() if self.event else None
            start = self.now()
            yield
            done = self.now()
            span = (begin, self.event()) if self.event else (start, done)
        self._handed_s.append((start, done))
        self._spans.append(span)
        self.shapes.append(shape)
        if self.steps == 1:
            self._disk.append(self.disk())

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return len(self.shapes)

    def stop(self) -> None:
        """Wait for the end of the last step. Whoever looks at the device now sees it still hot."""
        self._wait()
        if len(self._rests) == 1:
            self._rest()

    def read(self) -> StepTimes:
        """The times of all steps. Waits for the device; call it after the loop."""
        self.stop()
        enqueue_ms = np.array([done - start for start, done in self._handed_s], dtype=np.float64) * 1000
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
            lag_ms=self._lag_ms(),
            first_step_read_bytes=self._first_step_read_bytes(),
            rest_energy_j=self._rest_energy_j(),
            compile_s=self.compiling.seconds if self.compiling else None,
            synchronizing=self.synchronizing.count if self.synchronizing else None,
        )

    def rest_s(self) -> float:
        """Seconds from the start of the second step to the end of the last, with all that lies between them. Waits.

        Before the second step the device stands still.
        """
        self._wait()
        start, end = self._spans[1][0], self._spans[-1][1]
        return float(start.elapsed_time(end) / 1000 if self.event else end - start)

    def _wait(self) -> None:
        if self.event and self._spans:
            self._spans[-1][1].synchronize()

    def _rest(self) -> None:
        """Read the energy when all steps so far are done: the device runs on while the host counts."""
        self._wait()
        energy_j = self.energy_j() if self.energy_j else None
        event = self.event() if self.event else None
        self._rests.append(Rest(self.now(), event, energy_j))

    def _lag_ms(self) -> np.ndarray | None:
        """For how long the device still worked on each step when the host had handed it over.

        Both clocks meet at two rests, an idle device passing an event at once; between them one may run faster.
        """
        if not self.event or len(self._rests) < 2:
            return None
        first, last = self._rests
        device_ms_per_host_s = first.event.elapsed_time(last.event) / (last.host_s - first.host_s)
        ended_ms = np.array([first.event.elapsed_time(end) for _, end in self._spans], dtype=np.float64)
        handed_s = np.array([done for _, done in self._handed_s], dtype=np.float64) - first.host_s
        lag_ms: np.ndarray = ended_ms - handed_s * device_ms_per_host_s
        return lag_ms

    def _first_step_read_bytes(self) -> int | None:
        before, after = self._disk if len(self._disk) == 2 else (None, None)
        return None if before is None or after is None else after - before

    def _rest_energy_j(self) -> float | None:
        if len(self._rests) < 2:
            return None
        (first, last), seconds = self._rests, self._rests[1].host_s - self._rests[0].host_s
        if first.energy_j is None or last.energy_j is None or seconds < LEAST_ENERGY_S:
            return None
        used_j = last.energy_j - first.energy_j
        return used_j if used_j >= 0 else None  # a reset counter


def recorded_event() -> Any:
    """A CUDA event at this point of the current stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
