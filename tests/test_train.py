"""The training loop on plain data: it learns, it is repeatable, and looking on does not change it."""

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import cycle, islice
from typing import Any

import numpy as np
import pytest
import torch
from composed import planted_config
from planted import Plain, plain_data
from test_clock import SECONDS
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from runner.errors import Refusal
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.digest import digest, lanes, text
from runner.worker.evaluate import evaluate
from runner.worker.train import AUTOCAST, Trained, train_model, weights

Batch = tuple[Tensor, Tensor]
TASK = Task("image", 10)


pytestmark = pytest.mark.usefixtures("one_thread")


class Noisy(nn.Module):
    """A network with everything that evaluation could disturb: dropout and running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 10)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


def batches(size: int = 8) -> Iterator[Batch]:
    """The plain data, over and over in the same order."""
    train, _ = plain_data()
    items = [train[index] for index in range(128)]
    while True:
        for start in range(0, len(items), size):
            inputs, targets = zip(*items[start : start + size], strict=True)
            yield torch.stack(inputs), torch.stack(targets)


def trained(
    model: nn.Module,
    *words: str,
    steps: int = 12,
    evaluation: Callable[[], Any] = lambda: None,
    source: Any = None,
    number: int = 0,
) -> Trained:
    """Train with these settings, on the plain data unless others are given."""
    torch.manual_seed(7)
    config = planted_config("Plain", *words)
    found = source or batches()
    return train_model(model.train(), TASK, found, config, steps, Clock(None), evaluation, number=number)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(3)
    return Plain(64)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_the_loss_falls(optimizer: str, model: nn.Module) -> None:
    words = [f"train.optimizer={optimizer}", "train.learning_rate=0.02"]
    losses = torch.stack(trained(model, *words, steps=160).losses)
    assert losses[-16:].mean() < losses[:16].mean() / 2


def test_equal_starts_end_in_equal_bits(model: nn.Module) -> None:
    one, other = deepcopy(model), deepcopy(model)
    first, second = trained(one), trained(other)
    assert digest(weights(one)) == digest(weights(other)) != digest(weights(model))
    assert digest(first.losses) == digest(second.losses)


def test_weights_are_kept_after_steps_1_2_4_8(model: nn.Module) -> None:
    found = trained(deepcopy(model), steps=12)
    assert list(found.weights) == [1, 2, 4, 8]
    for step in (1, 2, 4, 8):
        shorter = deepcopy(model)
        trained(shorter, steps=step)
        assert text(found.weights[step]) == text(lanes(weights(shorter)))


def test_inputs_and_targets_of_every_step_are_kept(model: nn.Module) -> None:
    found, source = trained(model, steps=5), batches()
    assert [text(one) for one in found.data] == [text(lanes(next(source))) for _ in range(5)]
    assert len({text(one) for one in found.data}) == 5


def test_every_step_leaves_one_scalar_loss_without_a_graph(model: nn.Module) -> None:
    losses = trained(model, steps=5).losses
    assert [(loss.shape, loss.requires_grad) for loss in losses] == [(torch.Size([]), False)] * 5


def evaluating(model: nn.Module) -> Callable[[], Any]:
    """Evaluate the model as a trial does."""
    _, test = plain_data()
    items = [test[index] for index in range(64)]
    batch = torch.stack([one for one, _ in items]), torch.stack([target for _, target in items])
    return lambda: evaluate(model, TASK, [batch, batch], torch.device("cpu"), None)


def test_evaluating_more_often_changes_nothing_that_training_leaves() -> None:
    torch.manual_seed(3)
    start, left = Noisy(), []
    for every in ("null", "1", "5"):
        model = deepcopy(start)
        found = trained(model, f"train.evaluate_every={every}", evaluation=evaluating(model))
        left.append((digest(weights(model)), digest(found.losses)))
    assert len(set(left)) == 1


@pytest.mark.parametrize(
    ("every", "steps", "at"), [("null", 12, []), ("5", 12, [5, 10]), ("4", 12, [4, 8]), ("1", 3, [1, 2]), ("9", 3, [])]
)
def test_evaluations_lie_between_steps_and_the_last_is_left_to_the_caller(
    every: str, steps: int, at: list[int], model: nn.Module
) -> None:
    found = trained(model, f"train.evaluate_every={every}", steps=steps, evaluation=lambda: "seen")
    assert found.evaluations == dict.fromkeys(at, "seen")


@pytest.mark.parametrize("precision", ["default", "fp32", "tf32", "bf16", "fp16"])
def test_every_precision_trains_on_a_cpu(precision: str) -> None:
    torch.manual_seed(3)
    model, seen = Noisy(), []
    model.net[5].register_forward_hook(lambda *found: seen.append(found[2].dtype))
    losses = trained(model, f"precision={precision}", "train.learning_rate=0.02", steps=64).losses
    assert set(seen) == {AUTOCAST.get(precision, torch.float32)}
    assert {loss.dtype for loss in losses} == {torch.float32}
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    assert torch.stack(losses[-16:]).mean() < torch.stack(losses[:16]).mean()


def test_biases_that_learn_at_a_factor_move_by_that_factor(model: nn.Module) -> None:
    moved = []
    for factor in ("1", "0.25", "0"):
        other = deepcopy(model)
        trained(other, "train.optimizer=sgd", "train.weight_decay=0", f"train.bias_factor={factor}", steps=1)
        moved.append([new.detach() - old.detach() for new, old in zip(weights(other), weights(model), strict=True)])
    for all_of_it, quarter, nothing in zip(*moved, strict=True):
        shares = (1, 1) if all_of_it.dim() > 1 else (0.25, 0)
        assert torch.allclose(quarter, all_of_it * shares[0], rtol=1e-3, atol=1e-8)
        assert torch.allclose(nothing, all_of_it * shares[1], rtol=1e-3, atol=1e-8)


def test_the_cell_of_an_older_study_trains_as_it_did(model: nn.Module) -> None:
    config, left = planted_config("Plain", "train.optimizer=sgd"), []
    older = {key: config["train"][key] for key in (*OLD_KEYS, "learning_rate", "momentum", "weight_decay")}
    for train in (config["train"], older):
        other = deepcopy(model)
        train_model(other, TASK, batches(), config | {"train": train}, 4, Clock(None), lambda: None)
        left.append(digest(weights(other)))
    assert len(set(left)) == 1


OLD_KEYS = ("steps", "epochs", "batch_size", "optimizer", "schedule", "evaluate_every", "compile")


def test_the_schedule_is_stepped_with_the_training(model: nn.Module) -> None:
    one, other = deepcopy(model), deepcopy(model)
    same, differs = trained(one, steps=8), trained(other, "train.schedule=cosine", steps=8)
    assert text(same.weights[1]) == text(differs.weights[1])
    assert text(same.weights[2]) != text(differs.weights[2])


def test_targets_that_name_no_class_are_refused_in_the_first_step(model: nn.Module) -> None:
    with pytest.raises(Refusal, match="the targets run from 10 to 10, but 10 classes"):
        trained(model, source=iter([(torch.zeros(2, 1, 8, 8), torch.tensor([10, 10]))]))


def test_outputs_that_do_not_fit_the_targets_are_refused_in_the_first_step() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 7))
    with pytest.raises(Refusal, match=r"the model gives \(8, 7\), but the 10 classes"):
        trained(model)


def test_data_that_end_too_early_are_an_error(model: nn.Module) -> None:
    with pytest.raises(StopIteration):
        trained(model, steps=3, source=iter([next(batches())]))


def test_weights_are_parameters_and_buffers_in_order() -> None:
    model = Noisy()
    assert [id(tensor.untyped_storage()) for tensor in weights(model)] != []
    assert [tensor.data_ptr() for tensor in weights(model)] == [one.data_ptr() for one in model.state_dict().values()]
    assert len(weights(model)) == len(list(model.parameters())) + len(list(model.buffers()))


class Adapter(Noisy):
    """A model that saves nothing, and has a buffer that is never saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("unsaved", torch.ones(3), persistent=False)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {}


def test_what_a_model_does_not_save_is_looked_at_all_the_same() -> None:
    model = Adapter()
    before = digest(weights(model))
    assert len(weights(model)) == len(list(model.parameters())) + len(list(model.buffers()))
    model.unsaved[0] = 2
    assert digest(weights(model)) != before


@pytest.mark.parametrize("shared", [False, True])
def test_weights_are_those_of_the_state_dict_in_its_order(shared: bool) -> None:
    block = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model = nn.Sequential(block, nn.LSTM(3, 4, 2, bidirectional=True), block if shared else nn.Linear(3, 3))
    model.register_parameter("own", nn.Parameter(torch.ones(2)))
    saved = [one.data_ptr() for one in model.state_dict().values()]
    assert [one.data_ptr() for one in weights(model)] == saved


class Ticking(Plain):
    """A host whose time passes only where it is told to: 3 ms in the forward pass, 2 in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        first = next(self.parameters())
        first.register_hook(lambda gradient: self.passes(2))

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain."""
        self.passes(3)
        return super().forward(inputs)

    def passes(self, ms: float) -> None:
        self.now_s += ms / 1000


def test_a_step_is_forward_backward_and_update_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Ticking()
    clock = Clock(None, now=lambda: model.now_s)

    def slow_batches() -> Iterator[Batch]:
        for batch in islice(batches(), 12):
            model.passes(7)
            yield batch

    def slow_lanes(tensors: list[Tensor]) -> Tensor:
        model.passes(11)
        return lanes(tensors)

    def slow_evaluation() -> None:
        model.passes(17)

    monkeypatch.setattr("runner.worker.train.lanes", slow_lanes)
    config = planted_config("Plain", "train.evaluate_every=2", "train.optimizer=sgd")
    with register_optimizer_step_post_hook(lambda *_: model.passes(13)):
        train_model(model, TASK, slow_batches(), config, 12, clock, slow_evaluation)
    times = clock.read()
    assert times.step_ms == pytest.approx([3 + 2 + 13] * 12)
    assert times.wait_ms == pytest.approx([7] * 12)


class Stopwatch(nn.Module):
    """A network with long steps on small inputs; notes the host's time at the start of each forward pass."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = nn.Conv2d(1, 128, 3, padding=1), nn.Conv2d(128, 128, 3, padding=1)
        self.net = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(128 * 64, 10))
        self.starts: list[float] = []

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        self.starts.append(time.perf_counter())
        return self.net(inputs)  # type: ignore[no-any-return]


@pytest.mark.slow  # of a real host's noise: on a busy one 2 % are too few
def test_an_outside_stopwatch_agrees_with_the_steady_step() -> None:
    model, clock, ready = Stopwatch(), Clock(None), cycle(islice(batches(32), 4))
    train_model(model, TASK, ready, planted_config("Plain"), 40, clock, lambda: None)
    # From start to start, step by step: a batch's digest comes on top, next to nothing beside steps as long as these.
    times, outside_ms = clock.read(), np.diff(model.starts[1:]) * 1000
    beside_ms = np.median(outside_ms - times.step_ms[1:-1])
    assert beside_ms / times.speed(32, **SECONDS).step_ms == pytest.approx(0, abs=0.02)  # type: ignore[operator]
