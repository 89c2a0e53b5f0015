"""Steps bound by the host: handing one over takes as long as the step itself, and the device is done when the host is.

The first alone does not tell. CUDA queues about a thousand launches; a step of more of them, as a DenseNet's, keeps the
host waiting for the device inside the step, which then takes as long to hand over as to work off. Neither tells where
an operation of the step makes the host wait: such a detector may keep its device busy, or not.
"""

from collections.abc import Iterable

from runner.record import Speed

# The last kernels still run when the host has handed over the step: an LSTM whose steps follow the host's pace to the
# millisecond hands them over in 0.95 of their time.
LAST_KERNELS = 0.1


def host_bound(speed: Speed) -> bool | None:
    """Whether the steps of one trial were bound by the host; None without a steady figure, and where nothing tells."""
    if speed.enqueue_ms is None or speed.step_ms is None:
        return None
    lag_ms = speed.lag_ms or 0.0  # not measured in older records: there the first alone has to do
    together = speed.enqueue_ms >= (1 - LAST_KERNELS) * speed.step_ms and lag_ms <= LAST_KERNELS * speed.step_ms
    return None if together and speed.synchronizing else together


def mostly_host_bound(speeds: Iterable[Speed]) -> bool | None:
    """Whether at least half of the trials were: where a step lies at the border, the host's mood decides in each."""
    known = [one for one in map(host_bound, speeds) if one is not None]
    return 2 * sum(known) >= len(known) if known else None
