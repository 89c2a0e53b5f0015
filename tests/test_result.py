"""From a finished training to figures, digests and series."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from runner.jsonfile import plain
from runner.record import Speed
from runner.worker.digest import digest, lanes
from runner.worker.evaluate import Evaluated
from runner.worker.infer import Answered
from runner.worker.result import Result, peak_memory, result_of
from runner.worker.step_times import StepTimes
from runner.worker.train import Trained, weights

STEPS = 12


def evaluated(loss: float, predictions: list[int]) -> Evaluated:
    found = torch.tensor(predictions, dtype=torch.int32)
    return Evaluated({"loss": loss, "accuracy": 0.5}, found.numpy(), lanes([found]), 0.25, 64.0)


def result(losses: list[float] | None = None, weight: float = 1.0, metric: float = 0.3, shift: int = 0) -> Result:
    """The result of 12 steps; each argument plants one thing."""
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.fill_(weight)
        model.bias.fill_(0.0)
    trained = Trained(
        losses=[torch.tensor(loss) for loss in losses or np.linspace(2, 1, STEPS).tolist()],
        data=[lanes([torch.tensor([step + shift])]) for step in range(STEPS)],
        weights={1: lanes([torch.zeros(3)]), 8: lanes(weights(model))},
        evaluations={STEPS: evaluated(metric, [2, 1, 0]), 5: evaluated(0.9, [0, 0, 0])},
    )
    milliseconds = np.full(STEPS, 4.0)
    times = StepTimes(milliseconds, milliseconds / 2, milliseconds / 4, np.zeros(STEPS, dtype=np.int64))
    return result_of(model, trained, times, "initial", 32, {"peak_resident_bytes": 7}, build_s=1.0, train_s=2.0)


def test_a_training_with_finite_numbers_is_finished() -> None:
    found = result()
    assert (found.outcome, found.reason) == ("finished", None)
    assert found.figures["metrics"] == {"loss": 0.3, "accuracy": 0.5}
    assert found.figures["memory"] == {"peak_resident_bytes": 7}
    speed = found.figures["speed"]
    assert isinstance(speed, Speed)
    assert (speed.step_ms, speed.evaluate_s, speed.evaluate_samples_per_s) == (4.0, 0.25, 64.0)
    assert (speed.build_s, speed.train_s) == (1.0, 2.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_not_finite_is_a_divergence_at_its_first_step(value: float) -> None:
    found = result(losses=[1.0, 1.0, value, 1.0, float("nan"), *[1.0] * 7])
    assert (found.outcome, found.reason) == ("diverged", f"the loss is {value} at step 3")


def test_a_weight_that_is_not_finite_is_a_divergence() -> None:
    found = result(weight=float("inf"))
    assert (found.outcome, found.reason) == ("diverged", "a weight is not finite after the last step")


def result_of_answers(losses: list[float], finite: list[bool]) -> Result:
    """The result of as many batches answered by a model whose weights no longer matter."""
    steps, model = len(losses), nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, float("inf"))
    answered = Answered(
        losses=[torch.tensor(loss) for loss in losses],
        data=[lanes([torch.tensor([step])]) for step in range(steps)],
        outputs=[lanes([torch.tensor([step])]) for step in range(steps)],
        finite=[torch.tensor(one) for one in finite],
        evaluations={steps: evaluated(0.3, [2, 1, 0])},
    )
    milliseconds = np.full(steps, 4.0)
    times = StepTimes(milliseconds, milliseconds, milliseconds, np.zeros(steps, dtype=np.int64))
    return result_of(model, answered, times, "initial", 32, {}, build_s=1.0, train_s=2.0, samples_per_s=77.0)


def test_answers_with_finite_numbers_are_finished_whatever_the_weights_are() -> None:
    found = result_of_answers([1.0] * 9, [True] * 9)
    assert (found.outcome, found.reason) == ("finished", None)
    assert (found.figures["speed"].step_ms, found.figures["speed"].samples_per_s) == (4.0, 77.0)
    assert list(found.figures["digests"].steps) == ["1", "2", "4", "8"]


def test_answers_that_are_not_finite_are_a_divergence() -> None:
    of_loss = result_of_answers([1.0, float("nan"), 1.0], [True, True, False])
    assert (of_loss.outcome, of_loss.reason) == ("diverged", "the loss is nan at step 2")
    of_output = result_of_answers([1.0, 1.0, 1.0], [True, False, False])
    assert (of_output.outcome, of_output.reason) == ("diverged", "an output is not finite in batch 2")


def digests(**changes: Any) -> dict[str, Any]:
    return asdict(result(**changes).figures["digests"])


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, set()),
        ({"losses": [1.0] * STEPS}, {"losses"}),
        ({"weight": 2.0}, {"final", "steps"}),
        ({"metric": 0.3000001}, {"metrics"}),
        ({"shift": 1}, {"data"}),
    ],
)
def test_each_digest_covers_its_own_part(changes: dict[str, Any], changed: set[str]) -> None:
    one, other = digests(), digests(**changes)
    assert {name for name in one if one[name] != other[name]} == changed


def test_digests_of_steps_compare_with_that_of_the_end() -> None:
    found = digests()
    assert set(found["steps"]) == {"1", "8"}
    assert found["steps"]["8"] == found["final"] != found["steps"]["1"]
    assert found["initial"] == "initial"


def test_the_predictions_are_those_of_the_last_evaluation() -> None:
    found = result()
    assert found.series.predictions.tolist() == [2, 1, 0]
    assert digests()["predictions"] == digest_of_predictions([2, 1, 0])


def digest_of_predictions(classes: list[int]) -> str:
    from runner.worker.digest import text

    return text(lanes([torch.tensor(classes, dtype=torch.int32)]))


def test_the_series_holds_every_step_and_every_evaluation() -> None:
    series = result().series
    assert series.loss.dtype == np.float32
    assert series.loss.tolist() == pytest.approx(np.linspace(2, 1, STEPS).tolist())
    assert series.data.shape == (STEPS, 2)
    assert series.data.dtype == np.int64
    assert [tuple(row) for row in series.data.tolist()] == [
        tuple(lanes([torch.tensor([step])]).tolist()) for step in range(STEPS)
    ]
    assert series.evaluated.tolist() == [5, STEPS]
    assert series.evaluation_names.tolist() == ["loss", "accuracy"]
    assert series.evaluations.tolist() == [[0.9, 0.5], [0.3, 0.5]]
    assert (series.step_ms == 4).all()
    assert (series.enqueue_ms == 2).all()
    assert (series.wait_ms == 1).all()
    assert series.sketch.shape == (4096,)


def test_bits_of_losses_survive_in_their_digest() -> None:
    assert digests(losses=[0.0] * STEPS)["losses"] != digests(losses=[-0.0] * STEPS)["losses"]
    assert digests(losses=[0.0] * STEPS)["losses"] == digest([torch.zeros(STEPS)])


def test_figures_are_plain_numbers() -> None:
    figures = result().figures
    json.dumps(plain({name: value if isinstance(value, dict) else asdict(value) for name, value in figures.items()}))


def test_a_cpu_has_a_peak_of_the_host_and_none_of_a_device() -> None:
    found = peak_memory(torch.device("cpu"))
    resident = found.pop("peak_resident_bytes")
    assert resident is not None
    assert 50e6 < resident < 1e12
    assert found == {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
