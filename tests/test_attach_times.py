"""The times of an attached script's steps, of a device and a host whose clocks are known."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from queues import Queue

import runner.hook

STEPS = 12


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, from the folder that an attached script has on its path."""
    monkeypatch.syspath_prepend(Path(runner.hook.__file__).parent)
    return import_module("cudnn_attached.times")


@pytest.fixture
def queue(request: pytest.FixtureRequest, times: Any, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The queue that every mark on a device is made on."""
    queue = Queue(**request.param)

    def now(device: torch.device | None) -> Any:
        event = queue.event() if device is not None and device.type == "cuda" else None
        return times.Mark(queue.now(), event)

    monkeypatch.setattr(times.Mark, "now", now)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: queue.event().synchronize())
    return queue


def taken(queue: Queue, measured: Any, launches: int, device: str = "cuda", waits: bool = False) -> dict[str, Any]:
    """The times of steps of so many launches, of a script that fetches its batches from a loader.

    With `waits` it looks at the device before the optimizer's step.
    """
    for _ in range(STEPS):
        queue.host_ms += 1.0
        measured.fetched(0.001)
        measured.touched()
        measured.device = torch.device(device)
        for _ in range(launches):
            queue.launch()
        measured.backward_done()
        if waits:
            queue.event().synchronize()
        queue.launch()
        measured.end()
        measured.start()
    found: dict[str, Any] = measured.read()
    return found


WAITS_FOR_THE_HOST = {"launch_ms": 0.05, "kernel_ms": 0.01, "room": 1000}
FULL = {"launch_ms": 0.01, "kernel_ms": 0.05, "room": 1000}


@pytest.mark.parametrize(
    ("queue", "lag_ms"),
    [(WAITS_FOR_THE_HOST, 0.01), (FULL, 50.0), (FULL | {"fast": 1.01}, 50.5)],
    indirect=["queue"],
)
def test_the_lag_is_what_the_device_has_still_to_do(queue: Queue, times: Any, lag_ms: float) -> None:
    found = taken(queue, times.Times(), launches=2500)
    assert found["lag_ms"][0] == 0.0  # the device was waited for
    assert found["lag_ms"][1:] == pytest.approx([lag_ms] * (STEPS - 1), rel=0.02)
    assert found["enqueue_ms"][2:] == pytest.approx([125.0] * (STEPS - 2), rel=0.02)  # of either
    assert found["step_ms"][2:] == pytest.approx([125.0 * queue.fast] * (STEPS - 2), rel=0.02)


@pytest.mark.parametrize("queue", [FULL], indirect=True)
def test_a_script_that_waits_for_the_device_within_its_step_is_not_taken_for_a_slow_host(
    queue: Queue, times: Any
) -> None:
    found = taken(queue, times.Times(), launches=500, waits=True)
    assert found["enqueue_ms"][2:] == pytest.approx([25.0] * (STEPS - 2), rel=0.02)  # as long as the step itself
    assert found["step_ms"][2:] == pytest.approx([25.0] * (STEPS - 2), rel=0.02)
    assert found["lag_ms"][2:] == pytest.approx([500 * 0.04] * (STEPS - 2), rel=0.02)  # before the wait


@pytest.mark.parametrize("queue", [FULL], indirect=True)
def test_a_device_that_is_the_host_has_no_lag(queue: Queue, times: Any) -> None:
    assert taken(queue, times.Times(), launches=3, device="cpu")["lag_ms"] is None
