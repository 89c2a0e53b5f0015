"""Evaluation: what it finds is right, and nothing that training uses is changed by it."""

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from runner.worker.contract import Task
from runner.worker.digest import digest, lanes, text
from runner.worker.evaluate import KEPT_PREDICTIONS, Evaluated, evaluate
from runner.worker.train import weights

CPU = torch.device("cpu")
Batch = tuple[Tensor, Tensor]


class Scores(nn.Module):
    """Its inputs are its outputs."""

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, C) -> (B, C)."""
        return inputs


def scored(classes: list[int], targets: list[int]) -> Batch:
    """Inputs that Scores answers with these classes."""
    return nn.functional.one_hot(torch.tensor(classes), 3).float() * 50, torch.tensor(targets)


def evaluated(model: nn.Module, *batches: Batch, view: str = "image", dtype: torch.dtype | None = None) -> Evaluated:
    return evaluate(model, Task(view, 3), batches, CPU, dtype)


def test_every_sample_counts_once_whatever_the_batches() -> None:
    found = evaluated(Scores(), scored([0, 1, 2, 2], [0, 1, 2, 0]), scored([1], [2]))
    assert found.metrics["accuracy"] == pytest.approx(3 / 5)
    assert found.metrics["loss"] == pytest.approx(2 * 50 / 5)
    assert found.predictions.tolist() == [0, 1, 2, 2, 1]


def test_a_forecast_predicts_values() -> None:
    inputs, targets = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.5, 3.5]])
    found = evaluated(Scores(), (inputs, targets), view="forecast")
    assert found.predictions.tolist() == [1.0, 2.0, 3.0]
    assert found.metrics["mae"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("training", [True, False])
def test_the_state_of_the_model_is_put_back(training: bool) -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train(training)
    before, seen = digest(weights(model)), []
    model.register_forward_hook(lambda *_: seen.append((model.training, torch.is_grad_enabled())))
    evaluated(model, scored([0, 1], [0, 1]))
    assert seen == [(False, False)]
    assert model.training is model[0].training is model[1].training is training
    assert digest(weights(model)) == before
    assert torch.is_grad_enabled()


def test_the_random_generators_are_put_back() -> None:
    class Draws(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs + torch.rand(1)

    torch.manual_seed(5)
    before = torch.get_rng_state()
    evaluated(Draws(), scored([0, 1], [0, 1]))
    assert torch.equal(torch.get_rng_state(), before)


def test_evaluating_twice_finds_the_same_bits() -> None:
    torch.manual_seed(0)
    model, batch = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), (torch.randn(64, 3), torch.randint(3, (64,)))
    one, other = evaluated(model, batch), evaluated(model, batch)
    assert (one.metrics, text(one.lanes)) == (other.metrics, text(other.lanes))


def test_the_digest_covers_predictions_that_are_not_kept() -> None:
    size = 2 * KEPT_PREDICTIONS
    classes = [number % 3 for number in range(size)]
    changed = [*classes]
    changed[1] = (changed[1] + 1) % 3
    one, other = evaluated(Scores(), scored(classes, classes)), evaluated(Scores(), scored(changed, classes))
    assert one.predictions.tolist() == other.predictions.tolist() == classes[::2]
    assert text(one.lanes) != text(other.lanes)
    assert text(one.lanes) == text(lanes([torch.tensor(classes, dtype=torch.int32)]))


@pytest.mark.parametrize("size", [1, KEPT_PREDICTIONS, KEPT_PREDICTIONS + 1, 5 * KEPT_PREDICTIONS // 2])
def test_kept_predictions_are_few_and_spread_over_all(size: int) -> None:
    classes = random.Random(0).choices(range(3), k=size)
    found = evaluated(Scores(), scored(classes, classes)).predictions
    stride = 1 if size <= KEPT_PREDICTIONS else 2 if size <= 2 * KEPT_PREDICTIONS else 3
    assert found.tolist() == classes[::stride]
    assert len(found) <= KEPT_PREDICTIONS
    assert found.dtype == np.int32


def test_a_single_batch_gives_no_rate_and_several_do() -> None:
    batch = scored([0, 1], [0, 1])
    assert evaluated(Scores(), batch).samples_per_s is None
    several = evaluated(Scores(), batch, batch, batch)
    assert several.samples_per_s is not None
    assert several.samples_per_s >= 4 / several.evaluate_s > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_used_where_it_is_asked_for(dtype: torch.dtype) -> None:
    model, seen = nn.Linear(3, 3), []
    model.register_forward_hook(lambda *found: seen.append(found[2].dtype))
    batch = scored([0, 1], [0, 1])
    evaluated(model, batch, dtype=dtype)
    evaluated(model, batch)
    assert seen == [dtype, torch.float32]


def test_a_model_that_draws_from_numpy_and_random_finds_its_own_numbers_after_an_evaluation() -> None:
    class Draws(Scores):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs + random.random() * 0 + np.random.rand() * 0

    random.seed(1)
    np.random.seed(1)
    expected = (random.random(), np.random.rand())
    random.seed(1)
    np.random.seed(1)
    evaluated(Draws(), scored([0, 1], [0, 1]))
    assert (random.random(), np.random.rand()) == expected


def test_the_rate_leaves_out_the_first_batch_of_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Scores):
        """A new shape takes 100 s, as if it were tuned or compiled, any other batch 2 s."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: set[int] = set()

        def forward(self, inputs: Tensor) -> Tensor:
            nonlocal now
            now += 2.0 if len(inputs) in self.seen else 100.0
            self.seen.add(len(inputs))
            return inputs

    now = 0.0
    monkeypatch.setattr("runner.worker.evaluate.time.perf_counter", lambda: now)
    four, two, one = scored([0, 1, 2, 0], [0] * 4), scored([0, 1], [0] * 2), scored([0], [0])
    found = evaluated(Slow(), four, four, two, four, two, two, one)
    assert found.samples_per_s == (4 + 4 + 2 + 2) / (4 * 2.0)
    assert found.evaluate_s == 3 * 100.0 + 4 * 2.0
    assert evaluated(Slow(), four, two, one).samples_per_s is None


def test_predictions_outlive_the_outputs_they_came_from() -> None:
    class Reuses(nn.Module):
        """Answers every batch in the same memory, as a CUDA graph does."""

        outputs = torch.zeros(1, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.outputs.copy_(inputs)

    values = [torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[4.0, 5.0, 6.0]])]
    found = evaluated(Reuses(), *((one, one) for one in values), view="forecast")
    assert found.predictions.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
