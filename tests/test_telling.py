"""How far a trial has got is told seldom, between the steps, and nothing on the device is waited for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from composed import planted_config
from planted import Plain
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from runner.reached import Reached
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.infer import answer
from runner.worker.telling import EVERY_S, LateLoss, Telling, loss_reader
from runner.worker.train import train_model

STEPS, STEP_S = 20, 0.25
pytestmark = pytest.mark.usefixtures("one_thread")


class Now:
    """A clock that each step moves on."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


class SteppingClock(Clock):
    """A clock whose steps take STEP_S, and that knows whether one is being taken."""

    def __init__(self, now: Now):
        super().__init__(None, now=now)
        self.s = now
        self.inside = False

    @contextmanager
    def step(self, shape: tuple[int, ...]) -> Iterator[None]:
        with super().step(shape):
            self.inside = True
            yield
            self.s.s += STEP_S
            self.inside = False


class Reads(TorchDispatchMode):
    """Notes each value that the host reads from a tensor, and whether a step was being taken."""

    def __init__(self, clock: SteppingClock):
        super().__init__()
        self.clock = clock
        self.inside: list[bool] = []
        self.read: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            self.inside.append(self.clock.inside)
            self.read.append(args[0])
        return func(*args, **(kwargs or {}))


def batches() -> Iterator[tuple[Tensor, Tensor]]:
    """The same batch again and again."""
    images, labels = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 10
    while True:
        yield images, labels


def train(clock: Clock, telling: Telling) -> Any:
    config = planted_config("Plain", "train.optimizer=sgd")
    return train_model(Plain(), Task("image", 10), batches(), config, STEPS, clock, lambda: None, telling=telling)


def infer(clock: Clock, telling: Telling) -> Any:
    return answer(
        Plain(), Task("image", 10), batches(), planted_config("Plain", "phase=infer"), STEPS, clock, telling=telling
    )


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Reached]:
    """Everything that was written, in order."""
    found: list[Reached] = []
    write = Reached.write

    def noted(one: Reached, file: int) -> None:
        found.append(one)
        write(one, file)

    monkeypatch.setattr(Reached, "write", noted)
    return found


@pytest.mark.parametrize("phase", [train, infer])
def test_a_second_is_told_once_and_read_outside_the_steps(
    phase: Callable[..., Any], tmp_path: Path, told: list[Reached]
) -> None:
    now = Now()
    clock, asked = SteppingClock(now), []

    def read(loss: Tensor) -> float:
        asked.append(clock.inside)
        return float(loss)

    with Reads(clock) as reads:
        left = phase(clock, Telling(tmp_path / "reached", STEPS, read, now))
    every = int(EVERY_S / STEP_S)
    assert [one.step for one in told] == [1, *range(1 + every, STEPS, every), STEPS]
    assert [one.loss for one in told] == [float(left.losses[one.step - 1]) for one in told]
    assert asked == [False] * len(told)
    assert not any(reads.inside)
    assert Reached.read(tmp_path / "reached") == told[-1]


def test_steps_longer_than_a_second_are_told_each(tmp_path: Path, told: list[Reached]) -> None:
    now = Now()
    telling = Telling(tmp_path / "reached", 5, float, now)
    for step in range(1, 6):
        now.s += 1.5
        telling.reached(step, torch.tensor(0.5))
    assert [one.step for one in told] == [1, 2, 3, 4, 5]


class Copied:
    """An event that the device reaches when the test says so."""

    def __init__(self) -> None:
        self.recorded, self.reached = 0, False

    def record(self) -> None:
        self.recorded += 1

    def query(self) -> bool:
        return self.reached


def test_a_loss_on_the_device_is_read_from_its_copy_when_that_has_arrived() -> None:
    copied, copy = Copied(), torch.empty(())
    late, losses = LateLoss(copy, copied), [torch.tensor(value) for value in (4.0, 3.0, 2.0, 1.0)]
    with Reads(SteppingClock(Now())) as reads:
        assert late(losses[0]) is None
        assert late(losses[1]) is None  # the copy is still on its way: nothing is read, and none is asked for on top
        assert copied.recorded == 1 and reads.read == []
        copied.reached = True
        assert late(losses[2]) == 4.0
        assert late(losses[3]) == 2.0
    assert copied.recorded == 3
    assert all(one is copy for one in reads.read)


def test_a_loss_that_the_device_would_have_to_convert_is_left_out() -> None:
    late = LateLoss(torch.empty(()), Copied())
    assert late(torch.tensor(1.0, dtype=torch.float64)) is None
    assert not late._asked


def test_only_known_devices_are_read() -> None:
    assert loss_reader(torch.device("cpu"))(torch.tensor(0.5)) == 0.5
    assert loss_reader(torch.device("meta"))(torch.empty((), device="meta")) is None


@pytest.mark.parametrize("place", ["missing/reached", "/dev/full"])
def test_a_file_that_cannot_be_written_costs_nothing(place: str, tmp_path: Path) -> None:
    telling = Telling(tmp_path / place, 3, float)
    for step in (1, 2, 3):
        telling.reached(step, torch.tensor(0.5))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_is_not_waited_for(tmp_path: Path) -> None:
    device, now = torch.device("cuda"), Now()
    telling = Telling(tmp_path / "reached", 100, loss_reader(device), now)
    weights, found = torch.randn(4096, 4096, device=device), []
    torch.cuda.synchronize()
    try:
        torch.cuda.set_sync_debug_mode("error")
        for step in range(1, 41):
            loss = torch.linalg.vector_norm(weights @ weights)
            now.s += 0.3
            telling.reached(step, loss)
            found.append(loss)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    now.s += 2
    telling.reached(41, found[-1])
    last = Reached.read(tmp_path / "reached")
    assert last and last.step == 41 and last.loss in [float(one) for one in found]
