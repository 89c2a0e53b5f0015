"""A device that works off launches and a host that hands them over, both on clocks set by hand."""


class Queue:
    """A device that works off what the host hands over, its clock `fast` times the host's; the host may wait for it.

    Each launch costs the host `launch_ms` and the device `kernel_ms`; with `room` launches handed over and not yet
    done, the host waits within the step, as with CUDA.
    """

    def __init__(self, launch_ms: float, kernel_ms: float, room: int, fast: float = 1.0):
        self.launch_ms, self.kernel_ms, self.room, self.fast = launch_ms, kernel_ms, room, fast
        self.host_ms, self.ends = 50.0, [0.0]  # when each launch is done, on the host's clock

    def now(self) -> float:
        return self.host_ms / 1000

    def launch(self) -> None:
        if len(self.ends) > self.room:
            self.host_ms = max(self.host_ms, self.ends[-self.room])
        self.host_ms += self.launch_ms
        self.ends.append(max(self.host_ms, self.ends[-1]) + self.kernel_ms)

    def event(self) -> "QueueEvent":
        return QueueEvent(self, max(self.host_ms, self.ends[-1]))


class QueueEvent:
    """An event that the device passes at `host_ms`, on the host's clock."""

    def __init__(self, queue: Queue, host_ms: float):
        self.queue, self.host_ms = queue, host_ms

    def synchronize(self) -> None:
        self.queue.host_ms = max(self.queue.host_ms, self.host_ms)

    def elapsed_time(self, end: "QueueEvent") -> float:
        return (end.host_ms - self.host_ms) * self.queue.fast
