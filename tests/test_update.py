"""The optimizer and the schedule of its learning rate are what the settings say."""

import pytest
import torch
from composed import planted_config
from planted import Plain
from test_train import Noisy
from torch import nn
from torch.optim import SGD, Adam, AdamW

from runner.worker.update import make_optimizer, make_schedule

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(3)
    return Plain(64)


def test_a_cosine_falls_from_the_learning_rate_to_0(model: nn.Module) -> None:
    train = planted_config("Plain", "train.schedule=cosine", "train.learning_rate=0.5")["train"]
    optimizer = make_optimizer(model, train)
    schedule, rates = make_schedule(optimizer, train, 10), []
    assert schedule is not None
    for _ in range(10):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[0] == 0.5
    assert rates[5] == pytest.approx(0.25)
    assert rates == sorted(rates, reverse=True)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0, abs=1e-12)


def rates(model: nn.Module, steps: int, *words: str) -> list[float]:
    """The learning rate of each step, and the one after the last."""
    train = planted_config("Plain", "train.learning_rate=0.5", "train.optimizer=sgd", *words)["train"]
    optimizer = make_optimizer(model, train)
    schedule, found = make_schedule(optimizer, train, steps), []
    assert schedule is not None
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return [*found, optimizer.param_groups[0]["lr"]]


def test_a_line_falls_from_the_learning_rate_to_0(model: nn.Module) -> None:
    assert rates(model, 5, "train.schedule=linear") == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_warm_up_ends_where_the_schedule_goes_on_as_without_one(schedule: str, model: nn.Module) -> None:
    plain = rates(model, 10, f"train.schedule={schedule}")
    warmed = rates(model, 10, f"train.schedule={schedule}", "train.warmup_steps=4")
    assert warmed[:4] == pytest.approx([0, 0.125, 0.25, 0.375])
    assert warmed[4:] == pytest.approx(plain[4:], abs=1e-9)


def test_a_warm_up_can_stand_alone_and_be_longer_than_the_training(model: nn.Module) -> None:
    assert rates(model, 4, "train.warmup_steps=2") == pytest.approx([0, 0.25, 0.5, 0.5, 0.5])
    assert rates(model, 2, "train.epochs=1", "train.steps=null", "train.warmup_steps=10") == pytest.approx(
        [0, 0.05, 0.1]
    )


def test_biases_and_scales_learn_at_a_factor_of_the_rate_whatever_the_schedule() -> None:
    model, words = Noisy(), ["train.bias_factor=0.1", "train.learning_rate=0.5", "train.schedule=linear"]
    train = planted_config("Plain", "train.optimizer=sgd", *words)["train"]
    optimizer = make_optimizer(model, train)
    schedule = make_schedule(optimizer, train, 10)
    assert schedule is not None
    by_rate = {group["lr"]: {id(one) for one in group["params"]} for group in optimizer.param_groups}
    convolution, norm, linear = model.net[0], model.net[1], model.net[5]
    assert by_rate == {
        0.5: {id(convolution.weight), id(linear.weight)},
        0.05: {id(convolution.bias), id(norm.weight), id(norm.bias), id(linear.bias)},
    }
    optimizer.step()
    schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.45, 0.045])


def test_there_is_no_schedule_unless_asked_for(model: nn.Module) -> None:
    train = planted_config("Plain", "train.schedule=constant")["train"]
    assert make_schedule(make_optimizer(model, train), train, 10) is None


def test_an_optimizer_is_what_the_settings_say(model: nn.Module) -> None:
    words = ["train.learning_rate=0.1", "train.momentum=0.5", "train.nesterov=true", "train.weight_decay=0.01"]
    for name, kind, keys in (
        ("sgd", SGD, ["lr", "momentum", "nesterov", "weight_decay"]),
        ("adam", Adam, ["lr", "weight_decay"]),
        ("adamw", AdamW, ["lr", "weight_decay"]),
    ):
        optimizer = make_optimizer(model, planted_config("Plain", f"train.optimizer={name}", *words)["train"])
        group = optimizer.param_groups[0]
        wanted = {"lr": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 0.01}
        assert type(optimizer) is kind
        assert {key: group[key] for key in keys} == {key: wanted[key] for key in keys}
        assert len(group["params"]) == len(list(model.parameters()))
