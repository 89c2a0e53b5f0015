"""The times of the steps: CUDA events where the script trains on such a device, else the host's clock."""

import time
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Mark:
    """A moment: on the host's clock in seconds, and as a recorded event of the device, if there is one."""

    host_s: float
    event: Any = None

    @classmethod
    def now(cls, device: torch.device | None) -> "Mark":
        """The present moment; on CUDA that at which the current stream comes to it."""
        event = None
        if device is not None and device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(device))
        return cls(time.perf_counter(), event)

    def ms_to(self, end: "Mark") -> float:
        """Milliseconds to a later moment, on the device's clock where both are on it."""
        if self.event is None or end.event is None:
            return (end.host_s - self.host_s) * 1000
        return float(self.event.elapsed_time(end.event))


@dataclass
class Times:
    """Begin and end of each step; `paused_s` is what the hook itself did within the first one.

    `rest` is the moment after the first step at which the device has nothing to do: there its clock meets the host's.
    `handed` are the moments of each step at which something is handed over whole: each backward pass, and the step.

    Nothing waits within a step. Before each the host waits until the device has begun the one before: with a full
    queue its time to hand a step over could not be told from the device's.
    """

    device: torch.device | None = None
    begin: Mark | None = None
    fresh: bool = True  # nothing of the step has been done since `begin`
    wait_s: float = 0.0
    spans: list[tuple[Mark, Mark]] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    paused_s: float = 0.0
    rest: Mark | None = None
    at_work: list[Mark] = field(default_factory=list)
    handed: list[list[Mark]] = field(default_factory=list)

    def touched(self) -> None:
        """Something of a step is done; the first step of all begins with it."""
        if self.begin is None:
            self.begin = Mark.now(None)
        self.fresh = False

    def fetched(self, wait_s: float) -> None:
        """A batch was waited for: a step that had only waited so far begins now."""
        self.wait_s += wait_s
        if self.fresh:
            self.begin = Mark.now(self.device)

    def backward_done(self) -> None:
        """A backward pass of the step is handed over."""
        self.at_work.append(Mark.now(self.device))

    def end(self) -> None:
        """A step is done."""
        if self.spans:
            end = Mark.now(self.device)
        else:
            end = self._rested()  # the first step began on the host's clock: no device was known
            self.rest = Mark.now(self.device)
        self.spans.append((self.begin or end, end))
        self.waits_s.append(self.wait_s)
        self.handed.append([*self.at_work, end])
        self.at_work = []

    def start(self) -> None:
        """The next step may begin."""
        begin = self.spans[-1][0]
        if begin.event is not None:
            begin.event.synchronize()
        self.begin, self.fresh, self.wait_s = Mark.now(self.device), True, 0.0

    def read(self) -> dict[str, list[float] | None]:
        """step_ms, enqueue_ms, wait_ms and lag_ms of all steps. Waits for the device."""
        self._rested()
        paused_ms = [self.paused_s * 1000, *(0.0 for _ in self.spans[1:])]
        spans = list(zip(self.spans, paused_ms, strict=False))
        return {
            "step_ms": [begin.ms_to(end) - own_ms for (begin, end), own_ms in spans],
            "enqueue_ms": [(end.host_s - begin.host_s) * 1000 - own_ms for (begin, end), own_ms in spans],
            "wait_ms": [wait_s * 1000 for wait_s in self.waits_s],
            "lag_ms": self._lag_ms(Mark.now(self.device)),
        }

    def _rested(self) -> Mark:
        """The host's moment at which the device, if it works apart from the host, has nothing to do. Waits for it."""
        if self.device is not None and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return Mark.now(None)

    def _lag_ms(self, last: Mark) -> list[float] | None:
        """For how long the device still worked on each step when the host had handed it over; 0 for the first.

        The most of its moments: a script may wait for the device between two of them, as torch.amp.GradScaler does
        between backward and step. The clocks meet at `rest` and at `last`; between them one may run faster.
        """
        first = self.rest
        if first is None or first.event is None or last.event is None:
            return None
        device_ms_per_host_s = first.ms_to(last) / (last.host_s - first.host_s)

        def behind_ms(one: Mark) -> float:
            return first.ms_to(one) - (one.host_s - first.host_s) * device_ms_per_host_s

        return [0.0, *(max(map(behind_ms, marks)) for marks in self.handed[1:])]
