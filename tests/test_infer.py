"""Inference: what is answered, what is timed, and what a trial of it leaves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from composed import planted_cell, planted_config
from conftest import study
from one_trial import one_trial
from planted import Plain, plain_data
from test_clock import FakeDevice, span
from torch import Tensor, nn

from runner.errors import Refusal
from runner.layout import series_file
from runner.series import Series
from runner.worker import infer
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.digest import digest, lanes, text
from runner.worker.infer import Answered, answer, stream, streamed
from runner.worker.train import weights

STEPS = 9


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(3)
    return Plain()


def batches(count: int = 99, changed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of 4; in the one numbered `changed` from 1 a single input differs in its last bit."""
    train, _ = plain_data()
    for number in range(count):
        inputs, targets = torch.utils.data.default_collate([train[(4 * number + one) % 64] for one in range(4)])
        if number + 1 == changed:
            inputs[0, 0, 0, 0] = torch.nextafter(inputs[0, 0, 0, 0], torch.tensor(100.0)) + 1e-3
        yield inputs, targets


def answered(model: nn.Module, *words: str, source: Any = None, clock: Clock | None = None) -> Answered:
    config = planted_config("Plain", "phase=infer", *words)
    return answer(model, Task("image", 10), source or batches(), config, STEPS, clock or Clock(None))


class Watches(nn.Module):
    """As Plain; notes in which state of torch and of itself it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.seen = Plain(), []  # type: ignore[var-annotated]

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        outputs = self.net(inputs)
        self.seen.append((self.training, torch.is_inference_mode_enabled(), outputs.dtype))
        return outputs  # type: ignore[no-any-return]


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_both_passes_run_the_layers_for_inference_in_the_precision_asked_for(
    precision: str, dtype: torch.dtype
) -> None:
    model = Watches().train()
    before = digest(weights(model))
    answered(model, f"precision={precision}")
    stream(model, batches(), planted_config("Plain", f"precision={precision}"), STEPS, Clock(None))
    assert model.seen == [(False, True, dtype)] * (2 * STEPS)
    assert digest(weights(model)) == before


def test_losses_are_those_of_the_answers(model: nn.Module) -> None:
    expected = [nn.functional.cross_entropy(model(inputs), targets) for inputs, targets in batches(STEPS)]
    assert torch.stack(answered(model).losses).tolist() == pytest.approx(torch.stack(expected).tolist(), rel=1e-6)


def test_the_data_are_told_as_in_training(model: nn.Module) -> None:
    assert [text(one) for one in answered(model).data] == [text(lanes(batch)) for batch in batches(STEPS)]


def test_outputs_are_told_up_to_batches_1_2_4_8_and_all_together(model: nn.Module) -> None:
    final, steps = answered(model).digests(model)
    outputs = [lanes([model(inputs)]) for inputs, _ in batches(STEPS)]
    assert list(steps) == ["1", "2", "4", "8"]
    assert steps["4"] == text(lanes(outputs[:4]))
    assert final == text(lanes(outputs))


@pytest.mark.parametrize("changed", range(1, STEPS + 1))
def test_an_answer_that_differs_shows_from_its_batch_on(changed: int, model: nn.Module) -> None:
    (final, steps), (other, others) = (
        answered(model, source=source).digests(model) for source in (batches(), batches(changed=changed))
    )
    assert final != other
    assert [step for step in steps if steps[step] != others[step]] == [
        step for step in ("1", "2", "4", "8") if int(step) >= changed
    ]


def test_equal_answers_have_equal_digests(model: nn.Module) -> None:
    assert answered(model).digests(model) == answered(model).digests(model)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_the_first_batch_without_finite_outputs_is_named(bad: float, model: nn.Module) -> None:
    def spoilt() -> Iterator[tuple[Tensor, Tensor]]:
        for number, (inputs, targets) in enumerate(batches(), start=1):
            yield inputs * (bad if number in (3, 5) else 1), targets

    assert answered(model, source=spoilt()).not_finite(model) == "an output is not finite in batch 3"
    assert answered(model).not_finite(model) is None


def test_what_does_not_fit_is_refused_in_the_first_step(model: nn.Module) -> None:
    with pytest.raises(Refusal, match="the targets run from 10 to 10"):
        answered(model, source=iter([(torch.zeros(2, 1, 8, 8), torch.tensor([10, 10]))]))
    with pytest.raises(Refusal, match=r"the model gives \(4, 7\)"):
        answered(nn.Sequential(nn.Flatten(), nn.Linear(64, 7)))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A device that notes when it is waited for as a whole."""
    fake = FakeDevice()
    monkeypatch.setattr(infer, "wait", lambda device: fake.log.append("wait for all"))
    return fake


def test_for_its_latency_a_batch_comes_to_an_idle_device(device: FakeDevice, model: nn.Module) -> None:
    answered(model, clock=Clock(device.event, device.now))
    waits = [index for index, word in enumerate(device.log) if word == "wait for all"]
    assert len(waits) == STEPS
    spans = [[device.log.index(f"record {event}") for event in span(step)] for step in range(STEPS)]
    for wait, (begin, end) in zip(waits, spans, strict=True):
        assert wait < begin
        assert end == begin + 1  # nothing in between


def test_for_the_throughput_a_batch_is_handed_over_before_the_last_one_is_done(
    device: FakeDevice, model: nn.Module
) -> None:
    clock = Clock(device.event, device.now)
    stream(model, batches(), planted_config("Plain"), STEPS, clock)
    assert device.log.count("wait for all") == 1
    assert device.log[0] == "wait for all"
    ends = [f"wait for {span(step)[1]}" for step in range(1, STEPS - 1)]  # after the first step the device rests
    assert not set(ends) & set(device.log)
    assert device.log[-2:] == [f"wait for {span(STEPS - 1)[1]}", f"record {span(STEPS)[0]}"]


def test_the_throughput_is_all_samples_after_the_first_step_by_their_time(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now)
    for _ in range(10):
        with clock.waiting(), clock.step((4, 1)):
            device.device_ms += 30
            device.host_s += 0.001
        device.device_ms += 20  # the device waits for the next batch: that is in it
    assert streamed(clock, 4)["samples_per_s"] == pytest.approx(9 * 4 / (0.030 * 9 + 0.020 * 8))


def test_too_few_batches_give_no_throughput(device: FakeDevice) -> None:
    clock = Clock(device.event, device.now)
    for _ in range(8):
        with clock.step((4, 1)):
            device.device_ms += 30
            device.host_s += 0.001
    assert streamed(clock, 4) == {"samples_per_s": None, "energy_j_per_sample": None}


def test_a_trial_answers_the_batches_that_it_would_have_trained_on(tmp_path: Path) -> None:
    words = ["train.steps=12", "train.evaluate_every=3"]
    (answering, folder), (training, _) = (
        one_trial(planted_cell("Plain", f"phase={phase}", *words), tmp_path / phase) for phase in ("infer", "train")
    )
    assert (answering.outcome, answering.reason) == ("finished", None)
    assert answering.digests and training.digests
    assert answering.digests.initial == training.digests.initial
    assert answering.digests.data == training.digests.data
    assert answering.digests.final != training.digests.final
    assert list(answering.digests.steps) == ["1", "2", "4", "8"]
    series = Series.read(series_file(folder))
    assert (len(series.step_ms), len(series.loss), series.evaluated.tolist()) == (12, 12, [12])
    assert answering.speed
    assert answering.speed.step_ms == pytest.approx(np.median(series.step_ms[1:]))
    assert answering.speed.samples_per_s != pytest.approx(8000 / answering.speed.step_ms, rel=1e-9)
    assert answering.metrics.keys() == training.metrics.keys()


def test_the_digits_are_answered_in_four_modes_with_equal_bits(tmp_path: Path) -> None:
    words = ["cudnn=glob(*)", "phase=infer", "trials=2", "train.steps=110", "train.batch_size=8"]
    done = study(*words, "model.cifar_stem=false", "threads=1", folder=tmp_path)
    cells = json.loads(done.summary_json.read_text())["cells"]
    assert [cell["reproducibility"]["verdict"] for cell in cells] == ["bitwise"] * 4
    assert len({record.digests.final for record in done.records() if record.digests}) == 1
    for record in done.records():
        assert record.speed
        assert record.speed.p99_ms >= record.speed.step_ms > 0  # type: ignore[operator]
        assert record.speed.samples_per_s > 0  # type: ignore[operator]
