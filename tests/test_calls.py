"""Many calls of one module in one process: what is timed when, which results differ, and by how much."""

import math
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from composed import planted_cell, planted_config
from one_trial import one_trial
from torch import Tensor, nn

from runner.kernel_use import KernelUse
from runner.layout import kernels_file, series_file
from runner.series import Series
from runner.worker import calls
from runner.worker.calls import Called, call_many
from runner.worker.clock import Clock
from runner.worker.probe import NO_PROBE

pytestmark = pytest.mark.usefixtures("one_thread")

TIMES = 12
IMAGES = torch.linspace(-1, 1, 2 * 64).reshape(2, 1, 8, 8)


def called(model: nn.Module, *words: str, inputs: list[Tensor] | None = None) -> Called:
    config = planted_config("Plain", "phase=calls", f"calls.times={TIMES}", *words)
    return call_many(model, inputs or [IMAGES], config, Clock(None), NO_PROBE, seed=5)


class Scaled(nn.Module):
    """Gives its inputs times a weight of 1; from the call numbered `first` on every `every`th result is an ulp off."""

    def __init__(self, first: int = 10**9, every: int = 1):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.first, self.every, self.calls = first, every, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, ...) to the same shape."""
        self.calls += 1
        outputs = inputs * self.weight
        if self.calls >= self.first and self.calls % self.every == 0:
            outputs = outputs + (torch.nextafter(outputs, torch.tensor(math.inf)) - outputs).detach()
        return outputs


class NoisyGradient(torch.autograd.Function):
    """Hands its input through; every gradient is another one."""

    numbers = count(1)

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        """The input itself."""
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Scaled anew at each call."""
        return gradient * (1 + 2.0**-10 * next(NoisyGradient.numbers))


class NoisyBackward(Scaled):
    """As Scaled, with equal outputs and gradients that differ."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Scaled."""
        return NoisyGradient.apply(super().forward(inputs))  # type: ignore[no-any-return]


def test_a_convolution_repeats_on_a_cpu_and_lies_a_rounding_off_float64() -> None:
    torch.manual_seed(0)
    module = nn.Conv2d(1, 4, 3)
    found = called(module, "calls.backward=true").calls
    assert found.gradients
    assert (found.outputs.calls, found.outputs.distinct, found.outputs.max_ulp) == (TIMES, 1, 0)
    assert (found.gradients.distinct, found.gradients.relative) == (1, 0.0)
    with torch.no_grad():
        exact = nn.functional.conv2d(IMAGES.double(), module.weight.double(), module.bias.double())  # type: ignore[union-attr]
        off = float((module(IMAGES).double() - exact).norm() / exact.norm())
    assert found.outputs.float64_error == pytest.approx(off)
    assert 0 < off < 1e-6
    assert found.gradients.float64_error and 0 < found.gradients.float64_error < 1e-5
    assert found.no_error is None


def test_results_that_differ_are_counted_and_their_size_is_told() -> None:
    # Loops and timed calls come first: of the calls that are compared, every third is one ulp off.
    found = called(Scaled(first=3 * TIMES + 1, every=3)).calls.outputs
    assert (found.calls, found.distinct, found.max_ulp) == (TIMES, 2, 1)
    off = torch.nextafter(IMAGES, torch.tensor(math.inf)) - IMAGES
    assert found.relative == pytest.approx(float(off.double().norm() / IMAGES.double().norm()))
    assert found.max_relative == pytest.approx(
        float((off / (IMAGES + off).abs().maximum(IMAGES.abs())).max()), rel=1e-6
    )


def test_gradients_are_compared_apart_from_outputs() -> None:
    found = called(NoisyBackward(), "calls.backward=true").calls
    assert found.gradients
    assert (found.outputs.distinct, found.gradients.distinct) == (1, TIMES)
    assert called(NoisyBackward()).calls.gradients is None


def test_what_differs_shows_in_the_digests_from_its_call_on() -> None:
    plain, differing = called(Scaled()).digests(), called(Scaled(first=3 * TIMES + 5)).digests()
    assert plain[0] != differing[0]
    assert [step for step in plain[1] if plain[1][step] != differing[1][step]] == ["8"]
    assert list(plain[1]) == ["1", "2", "4", "8"]
    assert plain == called(Scaled()).digests()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A host's clock that only a module moves, and a log of waits for the device and calls of the module."""
    host = SimpleNamespace(now=0.0, log=[])
    monkeypatch.setattr(calls, "time", SimpleNamespace(perf_counter=lambda: host.now))
    monkeypatch.setattr(calls, "wait", lambda device: host.log.append("wait"))
    return host


class Slow(Scaled):
    """As Scaled; the first call on each shape takes 500 ms by the host's clock, later ones 10."""

    def __init__(self, host: SimpleNamespace):
        super().__init__()
        self.host, self.seen = host, set()  # type: ignore[var-annotated]

    def forward(self, inputs: Tensor) -> Tensor:
        """As Scaled."""
        self.host.log.append("call")
        self.host.now += 0.01 if inputs.shape in self.seen else 0.5
        self.seen.add(inputs.shape)
        return super().forward(inputs)


def test_loops_are_timed_as_they_are_written_first_cold_and_then_warm(host: SimpleNamespace) -> None:
    found = called(Slow(host)).calls
    assert (found.cold.host_s, found.warm.host_s) == pytest.approx((0.5 + 0.01 * (TIMES - 1), 0.01 * TIMES))
    loop = ["wait", *["call"] * TIMES, "wait"]  # nothing waits in between
    assert host.log[: 2 * len(loop)] == loop * 2


def test_what_is_not_done_at_a_loops_end_is_waited_for_and_told_apart(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(device: torch.device) -> None:
        host.now += 3.0

    monkeypatch.setattr(calls, "wait", wait)
    found = called(Slow(host)).calls.warm
    assert found.done_s - found.host_s == pytest.approx(3.0)


def test_each_shape_has_its_first_call_apart(host: SimpleNamespace) -> None:
    inputs = [torch.ones(1, 1, side, side) for side in (8, 9, 10)]
    found = called(Slow(host), inputs=inputs).calls
    assert [one.shape for one in found.shapes] == ["1x1x8x8", "1x1x9x9", "1x1x10x10"]
    assert [one.first_ms for one in found.shapes] == pytest.approx([500] * 3)
    assert [one.later_ms for one in found.shapes] == pytest.approx([10] * 3)
    assert found.outputs.calls == TIMES // 3


def test_random_numbers_begin_each_call_alike_and_are_not_compared_with_float64() -> None:
    found = called(nn.Sequential(nn.Flatten(), nn.Dropout(0.5))).calls
    assert found.outputs.distinct == 1
    assert (found.outputs.float64_error, found.no_error) == (None, "the module draws random numbers")


class Narrow(Scaled):
    """Knows float32 alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Scaled."""
        if inputs.dtype is not torch.float32:
            raise TypeError(f"no {inputs.dtype}")
        return super().forward(inputs)


@pytest.mark.parametrize(
    ("model", "words", "why"),
    [(Narrow(), [], "no torch.float64"), (Scaled(), ["calls.float64=false"], "calls.float64=false")],
)
def test_why_there_is_no_error_is_said(model: nn.Module, words: list[str], why: str) -> None:
    found = called(model, *words).calls
    assert (found.outputs.float64_error, found.no_error) == (None, why)


def test_half_precision_is_further_off() -> None:
    torch.manual_seed(0)
    module = nn.Conv2d(1, 4, 3)
    plain, half = called(module).calls.outputs, called(module, "precision=bf16").calls.outputs
    assert plain.float64_error and half.float64_error and half.float64_error > 100 * plain.float64_error


def test_what_is_not_finite_is_said() -> None:
    assert called(Scaled(), inputs=[IMAGES / 0]).not_finite == "outputs are not finite"
    assert called(Scaled()).not_finite is None


@pytest.mark.parametrize("backward", ["false", "true"])
def test_a_trial_leaves_its_calls_and_the_kernels_of_one_more(backward: str, tmp_path: Any) -> None:
    words = ["phase=calls", "calls.times=20", f"calls.backward={backward}"]
    first, folder = one_trial(planted_cell("Plain", *words), tmp_path / "a")
    again, _ = one_trial(planted_cell("Plain", *words), tmp_path / "b")
    assert (first.outcome, first.reason) == ("finished", None)
    assert first.calls and first.speed and first.digests and again.digests
    assert first.digests.final == again.digests.final
    assert (first.metrics, first.speed.steps) == ({}, 20)
    assert first.speed.first_step_ms == first.calls.shapes[0].first_ms
    assert first.speed.steps_s == first.calls.cold.done_s
    series = Series.read(series_file(folder))
    assert (len(series.step_ms), len(series.predictions)) == (20, 0)
    parts = {call.part for call in KernelUse.read(kernels_file(folder)).operations}
    assert parts == ({"forward", "backward"} if backward == "true" else {"forward"})
    assert first.flags["default"]["benchmark"] is False
