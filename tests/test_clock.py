"""The clock, with a host clock and device events whose times are known."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from queues import Queue

from runner.analysis.host_bound import host_bound
from runner.worker.clock import Clock, read_bytes
from runner.worker.step_times import LEAST_STEADY_STEPS, StepTimes
from runner.worker.synchronizing import Synchronizing


class FakeDevice:
    """A device and a host whose clocks are set by hand; `log` holds what happened, in order."""

    def __init__(self) -> None:
        self.host_s, self.device_ms, self.events = 0.0, 0.0, count()
        self.log: list[str] = []

    def now(self) -> float:
        return self.host_s

    def event(self) -> "FakeEvent":
        return FakeEvent(self, next(self.events))


class FakeEvent:
    """An event recorded at the device's time of its making."""

    def __init__(self, device: FakeDevice, number: int):
        self.device, self.number, self.time = device, number, device.device_ms
        device.log.append(f"record {number}")

    def synchronize(self) -> None:
        self.device.log.append(f"wait for {self.number}")

    def elapsed_time(self, end: "FakeEvent") -> float:
        self.device.log.append("read")
        return end.time - self.time


def span(step: int) -> tuple[int, int]:
    """The numbers of the two events around a step: after those of the first one there is that of the rest."""
    return (2 * step + 1, 2 * step + 2) if step else (0, 1)


def train(clock: Clock, device: FakeDevice, steps: Iterable[tuple[float, float, float]], shape: Any = (8, 1)) -> None:
    """Take steps of (wait, enqueue, device time) in milliseconds; `shape` is one or comes one a step."""
    shapes: Iterator[Any] = repeat(shape) if isinstance(shape, tuple) else iter(shape)
    for (wait, enqueue, work), one in zip(steps, shapes, strict=False):
        with clock.waiting():
            device.host_s += wait / 1000
        device.host_s += 5  # whatever lies between is not timed
        with clock.step(one):
            device.log.append("span begins")
            device.host_s += enqueue / 1000
            device.device_ms += work
            device.log.append("span ends")
        device.host_s += 7
        device.device_ms += 11


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


@pytest.fixture
def clock(device: FakeDevice) -> Clock:
    """A clock of a device that has events."""
    return Clock(device.event, device.now)


def test_device_time_enqueue_time_and_wait_are_kept_apart(clock: Clock, device: FakeDevice) -> None:
    train(clock, device, [(1, 2, 30), (4, 5, 60), (7, 8, 90)])
    times = clock.read()
    assert times.step_ms == pytest.approx([30, 60, 90])
    assert times.enqueue_ms == pytest.approx([2, 5, 8])
    assert times.wait_ms == pytest.approx([1, 4, 7])


def test_without_events_a_step_takes_what_the_host_took(device: FakeDevice) -> None:
    clock = Clock(None, device.now)
    train(clock, device, [(1, 2, 30), (4, 5, 60)])
    times = clock.read()
    assert times.step_ms == pytest.approx([2, 5])
    assert times.enqueue_ms == pytest.approx([2, 5])


def test_nothing_waits_or_is_read_inside_a_span(clock: Clock, device: FakeDevice) -> None:
    train(clock, device, [(1, 1, 1)] * 5)
    begins = [index for index, word in enumerate(device.log) if word == "span begins"]
    ends = [index for index, word in enumerate(device.log) if word == "span ends"]
    assert [end - begin for begin, end in zip(begins, ends, strict=True)] == [1] * 5
    around = [(device.log[begin - 1], device.log[end + 1]) for begin, end in zip(begins, ends, strict=True)]
    assert around == [(f"record {begin}", f"record {end}") for begin, end in map(span, range(5))]
    assert "read" not in device.log


def test_the_host_runs_at_most_one_step_ahead(clock: Clock, device: FakeDevice) -> None:
    train(clock, device, [(1, 1, 1)] * 4)
    waits = [word for word in device.log if word.startswith("wait")]
    # The start of the step before, never its end but for the first: event 2 is that of the rest after it.
    assert waits == ["wait for 0", "wait for 1", "wait for 3", "wait for 5"]
    followed = {word: device.log[device.log.index(word) + 1] for word in waits[1:]}
    assert followed == {"wait for 1": "record 2", "wait for 3": "record 5", "wait for 5": "record 7"}


def test_reading_waits_for_the_end_of_the_last_step_first(clock: Clock, device: FakeDevice) -> None:
    train(clock, device, [(1, 1, 1)] * 3)
    device.log.clear()
    clock.read()
    assert device.log[:3] == ["wait for 6", "wait for 6", "record 7"]
    assert set(device.log[3:]) == {"read"}


def test_a_step_that_fails_is_not_counted(clock: Clock, device: FakeDevice) -> None:
    def fail() -> None:
        with clock.waiting():
            pass
        with clock.step((8, 1)):
            raise ValueError

    train(clock, device, [(1, 1, 1)] * 2)
    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    times = clock.read()
    assert clock.steps == 2
    assert {len(times.step_ms), len(times.enqueue_ms), len(times.wait_ms), len(times.shape)} == {2}


def test_a_clock_without_steps_reads_as_empty(clock: Clock) -> None:
    assert clock.steps == len(clock.read().step_ms) == 0


def test_shapes_are_counted_in_order_of_appearance(clock: Clock, device: FakeDevice) -> None:
    shapes = [(8, 3, 32), (8, 3, 16), (8, 3, 32), (8, 3, 64), (8, 3, 16)]
    train(clock, device, repeat((1, 1, 1)), iter(shapes))
    assert clock.read().shape.tolist() == [0, 1, 0, 2, 1]
    assert clock.read().first_of_shape().tolist() == [True, True, False, True, False]


def queued(queue: Queue, launches: int, steps: int = 12) -> StepTimes:
    """The times of steps of so many launches, with a millisecond of the host between them."""
    clock = Clock(queue.event, queue.now)
    for _ in range(steps):
        with clock.waiting():
            queue.host_ms += 1.0
        with clock.step((8, 1)):
            for _ in range(launches):
                queue.launch()
    return clock.read()


def bound(times: StepTimes) -> bool | None:
    return host_bound(times.speed(8, **SECONDS))


@pytest.mark.parametrize("fast", [1.0, 1.001, 0.98])
def test_the_lag_is_what_the_device_has_still_to_do_whatever_its_clock(fast: float) -> None:
    waits_for_the_host = queued(Queue(launch_ms=0.01, kernel_ms=0.004, room=1000, fast=fast), 300)
    assert waits_for_the_host.lag_ms == pytest.approx(0.004 * fast, rel=0.02)  # the last launch
    never_waits = queued(Queue(launch_ms=0.01, kernel_ms=0.02, room=1000, fast=fast), 300)
    # A step of 6 ms is handed over in 3, and only the second begins on an idle device; then the host is held to be
    # at most one step ahead: it begins when the device does the one before, and 6 + 3 ms remain when it is done.
    assert never_waits.lag_ms is not None
    assert never_waits.lag_ms[1] == pytest.approx((0.01 + 6 - 3) * fast, rel=0.02)
    assert never_waits.lag_ms[4:] == pytest.approx((12 - 3) * fast, rel=0.02)


def test_a_host_that_waits_for_a_full_queue_does_not_bind_the_step() -> None:
    full = queued(Queue(launch_ms=0.01, kernel_ms=0.05, room=1000), 2500)
    speed = full.speed(8, **SECONDS)
    assert speed.enqueue_ms == pytest.approx(speed.step_ms, rel=0.02)  # 125 ms, though the host needs 25 for it
    assert speed.lag_ms == pytest.approx(1000 * 0.05, rel=0.02)
    assert bound(full) is False


def test_a_host_that_is_slower_than_the_device_binds_the_step() -> None:
    slow = queued(Queue(launch_ms=0.05, kernel_ms=0.01, room=1000), 2500)
    assert bound(slow) is True


def test_a_record_without_a_lag_goes_by_the_time_to_hand_over() -> None:
    full = queued(Queue(launch_ms=0.01, kernel_ms=0.05, room=1000), 2500)
    assert bound(replace(full, lag_ms=None)) is True


def test_a_lag_is_never_less_than_nothing() -> None:
    values = np.full(12, 5.0)
    speed = StepTimes(values, values, values, np.zeros(12), lag_ms=np.full(12, -0.003)).speed(8, **SECONDS)
    assert speed.lag_ms == 0.0


def test_without_events_there_is_no_lag(device: FakeDevice) -> None:
    clock = Clock(None, device.now)
    train(clock, device, [(1, 1, 1)] * 12)
    times = clock.read()
    assert times.lag_ms is None
    assert times.speed(1, **SECONDS).lag_ms is None


SECONDS: dict[str, Any] = {
    "build_s": 1.0, "train_s": 2.0, "evaluate_s": 3.0, "evaluate_samples_per_s": None
}  # fmt: skip


def times(step_ms: list[float], shape: list[int]) -> StepTimes:
    """Steps of these times; a tenth of it to enqueue, a hundredth to wait."""
    values = np.array(step_ms, dtype=np.float64)
    return StepTimes(values, values / 10, values / 100, np.array(shape))


def test_the_steady_figures_are_medians_without_the_first_of_each_shape() -> None:
    steps = [1000.0, *[10.0] * 4, 500.0, *[10.0] * 3, 40.0, 40.0]
    speed = times(steps, [0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]).speed(32, **SECONDS)
    assert (speed.steps, speed.first_step_ms, speed.new_shapes_ms) == (11, 1000.0, [500.0])
    assert (speed.step_ms, speed.enqueue_ms, speed.wait_ms) == (10.0, 1.0, 0.1)
    assert speed.samples_per_s == 3200.0
    assert (speed.build_s, speed.train_s, speed.evaluate_s) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("shapes", [1, 2, 5])
def test_too_few_steady_steps_give_no_figure_and_just_enough_do(shapes: int) -> None:
    def speed(steady: int) -> Any:
        shape = [*range(shapes), *[0] * steady]
        return times([5.0] * len(shape), shape).speed(32, **SECONDS)

    few, enough = speed(LEAST_STEADY_STEPS - 1), speed(LEAST_STEADY_STEPS)
    assert (few.step_ms, few.enqueue_ms, few.wait_ms, few.samples_per_s) == (None, None, None, None)
    assert few.first_step_ms == 5.0
    assert len(few.new_shapes_ms) == shapes - 1
    assert (enough.step_ms, enough.samples_per_s) == (5.0, 6400.0)


def test_a_single_slow_step_does_not_move_the_steady_figure() -> None:
    values = list(chain([900.0], repeat(10.0, 20), [10_000.0]))
    assert times(values, [0] * len(values)).speed(1, **SECONDS).step_ms == 10.0


@given(st.permutations(range(1, 101)))
def test_the_99th_percentile_of_1_to_100_lies_just_above_99_in_whatever_order(steady: list[int]) -> None:
    found = times([10_000.0, *map(float, steady)], [0] * 101).speed(1, **SECONDS)
    assert found.p99_ms == pytest.approx(99.01)  # between the 99th and the 100th value, a hundredth of the way


def test_fewer_than_100_steady_steps_give_no_99th_percentile() -> None:
    assert times([5.0] * 100, [0] * 100).speed(1, **SECONDS).p99_ms is None
    assert times([5.0] * 101, [0] * 101).speed(1, **SECONDS).p99_ms == 5.0
    assert times([5.0] * 101, [0] * 100 + [1]).speed(1, **SECONDS).p99_ms is None


def test_all_steps_together_take_the_sum_of_their_times_with_the_first_ones() -> None:
    assert times([1500.0, 20.0, 400.0, 80.0], [0, 0, 1, 1]).speed(1, **SECONDS).steps_s == 2.0


def test_what_is_measured_elsewhere_counts_first() -> None:
    found = times([5.0] * 9, [0] * 9).speed(32, **SECONDS, samples_per_s=1.5)
    assert (found.step_ms, found.samples_per_s) == (5.0, 1.5)


def test_the_disk_is_read_right_before_and_right_after_the_first_step(device: FakeDevice) -> None:
    counts = iter([1000, 4096])

    def disk() -> int:
        device.log.append("disk")
        return next(counts)

    clock = Clock(device.event, device.now, disk=disk)
    train(clock, device, [(1, 1, 1)] * 3)
    assert device.log[:6] == ["disk", "record 0", "span begins", "span ends", "record 1", "disk"]
    assert device.log.count("disk") == 2
    assert clock.read().speed(1, **SECONDS).first_step_read_bytes == 3096


@pytest.mark.parametrize("counts", [(None, None), (None, 7), (7, None)])
def test_a_disk_that_nobody_counts_gives_no_figure(counts: tuple[int | None, int | None], device: FakeDevice) -> None:
    clock = Clock(None, device.now, disk=iter(counts).__next__)
    train(clock, device, [(1, 1, 1)] * 3)
    assert clock.read().first_step_read_bytes is None


def test_the_process_counts_what_it_reads_from_the_disk_or_nobody_does() -> None:
    found = read_bytes()
    assert found is None or 0 <= found <= read_bytes()  # type: ignore[operator]


class Meter:
    """A count of joules that follows the device: 2 of them for each millisecond of its work."""

    def __init__(self, device: FakeDevice):
        self.device = device

    def __call__(self) -> float:
        self.device.log.append("joules")
        return 1e6 + 2 * self.device.device_ms


def test_energy_is_that_of_the_steps_after_the_first(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now, energy_j=Meter(device))
    train(clock, device, [(1, 500, 30)] * 4)
    found = clock.read().speed(8, **SECONDS).energy_j_per_sample
    # After the first step: 11 ms between steps, three steps of 30 ms, each with 11 ms after it, the last not yet over.
    assert found == pytest.approx(2 * (3 * 30 + 3 * 11) / (3 * 8))


def test_energy_is_read_when_the_device_is_idle_and_outside_of_the_spans(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now, energy_j=Meter(device))
    train(clock, device, [(1, 500, 30)] * 3)
    clock.stop()
    reads = [index for index, word in enumerate(device.log) if word == "joules"]
    assert [device.log[index - 1] for index in reads] == ["wait for 1", "wait for 6"]
    assert [device.log[index + 1] for index in reads] == ["record 2", "record 7"]
    clock.read()
    assert device.log.count("joules") == 2


@pytest.mark.parametrize(("seconds", "known"), [(0.99, False), (1.01, True)])
def test_energy_over_less_than_a_second_is_no_figure(seconds: float, known: bool, device: FakeDevice) -> None:
    clock = Clock(device.event, device.now, energy_j=Meter(device))
    for took in (3.0, seconds):
        with clock.step((8, 1)):
            device.host_s += took
    assert (clock.read().rest_energy_j is not None) == known


def test_without_a_meter_there_is_no_energy(clock: Clock, device: FakeDevice) -> None:
    train(clock, device, [(1, 500, 30)] * 3)
    assert clock.read().rest_energy_j is None


def test_a_meter_that_stops_counting_gives_no_figure(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now, energy_j=iter([5.0, None]).__next__)
    train(clock, device, [(1, 600, 30)] * 4)
    assert clock.read().speed(1, **SECONDS).energy_j_per_sample is None


class Compiling:
    """Notes when it is entered and left."""

    def __init__(self, device: FakeDevice):
        self.device, self.seconds = device, 1.5

    def __enter__(self) -> None:
        self.device.log.append("listen")

    def __exit__(self, *_: object) -> None:
        self.device.log.append("deaf")


def test_compiling_is_listened_to_around_each_span_and_not_between(device: FakeDevice) -> None:
    clock: Any = Clock(device.event, device.now, compiling=Compiling(device))  # type: ignore[arg-type]
    train(clock, device, [(1, 1, 1)] * 2)
    expected = []
    for begin, end in ((0, 1), (3, 4)):
        expected += ["listen", f"record {begin}", "span begins", "span ends", f"record {end}", "deaf"]
    expected.insert(6, "record 2")
    assert [word for word in device.log if not word.startswith("wait")] == expected
    assert clock.read().speed(1, **SECONDS).compile_s == 1.5


class Counts(Synchronizing):
    """Notes when it counts; finds 3 operations."""

    def __init__(self, device: FakeDevice):
        super().__init__()
        self.device = device

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.device.log.append("count")
        yield
        self.count = 3


def test_operations_that_make_the_host_wait_are_counted_in_the_second_step_alone(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now, synchronizing=Counts(device))
    train(clock, device, [(1, 1, 1)] * 9)
    assert device.log.count("count") == 1
    place = device.log.index("count")
    assert device.log[place + 1 : place + 3] == [f"record {span(1)[0]}", "span begins"]
    assert clock.read().speed(1, **SECONDS).synchronizing == 3


@pytest.mark.parametrize(("events", "seconds"), [(True, 0.030 * 3 + 0.011 * 2), (False, 0.004 * 3 + 12.001 * 2)])
def test_the_rest_lasts_from_the_second_start_to_the_last_end(events: bool, seconds: float, device: FakeDevice) -> None:
    clock = Clock(device.event if events else None, device.now)
    # 12.001 s of the host and 0.011 s of the device lie between two steps.
    train(clock, device, [(1, 40, 50), *[(1, 4, 30)] * 3])
    assert clock.rest_s() == pytest.approx(seconds)


def test_real_time_passes(device: FakeDevice) -> None:
    clock = Clock(None)
    wait: Callable[[], int] = lambda: sum(range(100_000))  # noqa: E731
    with clock.waiting():
        wait()
    with clock.step((1,)):
        wait()
    assert clock.read().step_ms[0] > 0
    assert clock.read().wait_ms[0] > 0
