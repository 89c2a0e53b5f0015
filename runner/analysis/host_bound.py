"""Steps bound by the host: handing one over takes as long as the step itself, so the device waits for the host."""

from collections.abc import Iterable

from runner.record import Speed

# Less than 1, because the last kernels still run when the host has handed over the step: an LSTM whose steps follow
# the host's pace to the millisecond shows 0.95.
HOST_BOUND = 0.9


def host_bound(speed: Speed) -> bool | None:
    """Whether the steps of one trial were bound by the host; None without a steady figure."""
    if speed.enqueue_ms is None or speed.step_ms is None:
        return None
    return speed.enqueue_ms >= HOST_BOUND * speed.step_ms


def mostly_host_bound(speeds: Iterable[Speed]) -> bool | None:
    """Whether at least half of the trials were: where a step lies at the border, the host's mood decides in each."""
    known = [one for one in map(host_bound, speeds) if one is not None]
    return 2 * sum(known) >= len(known) if known else None
