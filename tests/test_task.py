"""Losses, metrics, predictions and refusals of each view, against values worked out by hand."""

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchmetrics.classification import MulticlassJaccardIndex

from runner.errors import Refusal
from runner.worker.mean_iou import MeanIoU
from runner.worker.task import Evaluation, check_outputs, check_targets, objective, predicted

CLASSES = 3
OUTPUT_SHAPES = {"image": (4, 3), "mask": (4, 3, 5, 6), "sequence": (4, 3), "next": (4, 5, 3), "forecast": (4, 3)}
TARGET_SHAPES = {"image": (4,), "mask": (4, 5, 6), "sequence": (4,), "next": (4, 5), "forecast": (4, 3)}
VIEWS = list(OUTPUT_SHAPES)
METRICS = {
    "image": {"loss", "accuracy"},
    "mask": {"loss", "pixel_accuracy", "mean_iou"},
    "sequence": {"loss", "accuracy"},
    "next": {"loss", "accuracy", "perplexity"},
    "forecast": {"loss", "mae"},
}


def batch(view: str, seed: int = 0, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Outputs and targets of the view's shapes, random."""
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(OUTPUT_SHAPES[view], generator=generator)
    numbers = torch.randn(TARGET_SHAPES[view], generator=generator)
    classes = torch.randint(CLASSES, TARGET_SHAPES[view], generator=generator)
    return outputs.to(device), (numbers if view == "forecast" else classes).to(device)


def evaluate(view: str, outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """The metrics of one batch."""
    evaluation = Evaluation(view, CLASSES, outputs.device)
    evaluation.update(outputs, targets)
    return evaluation.compute()


def one_hot_logits(classes: Tensor) -> Tensor:
    """Logits (B, 3, ...) that choose the classes (B, ...)."""
    return torch.nn.functional.one_hot(classes, CLASSES).movedim(-1, 1).float()


@pytest.fixture
def deterministic_algorithms() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("view", ["image", "mask", "sequence", "next"])
def test_equal_logits_cost_the_logarithm_of_the_classes(view: str) -> None:
    outputs, targets = batch(view)
    assert objective(view, torch.zeros_like(outputs), targets).item() == pytest.approx(math.log(3))


def test_the_loss_reads_the_axis_of_the_classes() -> None:
    # In each view the logit of the true class is ln 2 above the two others: probability 2 / 4.
    mask, text = torch.tensor([[[0, 1, 2]]]), torch.tensor([[2, 0, 1]])
    logits = math.log(2) * one_hot_logits(mask)
    assert objective("mask", logits, mask).item() == pytest.approx(math.log(2))
    logits = math.log(2) * one_hot_logits(text).movedim(1, -1)
    assert objective("next", logits, text).item() == pytest.approx(math.log(2))


def test_a_forecast_costs_its_mean_squared_error() -> None:
    outputs, targets = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 5.0]])
    assert objective("forecast", outputs, targets).item() == 5.0
    assert evaluate("forecast", outputs, targets) == {"loss": 5.0, "mae": 2.0}


@pytest.mark.parametrize("view", VIEWS)
def test_deterministic_algorithms_change_neither_loss_nor_gradient(view: str, request: pytest.FixtureRequest) -> None:
    outputs, targets = batch(view)
    outputs.requires_grad_()
    usual = objective(view, outputs, targets)
    gradient = torch.autograd.grad(usual, outputs)
    request.getfixturevalue("deterministic_algorithms")
    strict = objective(view, outputs, targets)
    torch.testing.assert_close(strict, usual)
    torch.testing.assert_close(torch.autograd.grad(strict, outputs), gradient)


def test_mask_metrics_worked_out_by_hand() -> None:
    # Class 0: 1 shared of 2; class 1: 2 shared of 3; class 2 occurs nowhere and does not count.
    targets, answers = torch.tensor([[[0, 0], [1, 1]]]), torch.tensor([[[0, 1], [1, 1]]])
    metrics = evaluate("mask", one_hot_logits(answers), targets)
    assert metrics["mean_iou"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert metrics["pixel_accuracy"] == 3 / 4


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**16), st.integers(2, 5), st.booleans())
def test_mean_iou_equals_that_of_torchmetrics(seed: int, classes: int, twice: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    ours, theirs = MeanIoU(classes), MulticlassJaccardIndex(classes)
    for _ in range(1 + twice):
        answers, targets = torch.randint(classes, (2, 2, 3, 4), generator=generator)
        ours.update(answers, targets)
        theirs.update(answers, targets)
    assert torch.equal(ours.compute(), theirs.compute())


def test_accuracy_is_exact_in_float64() -> None:
    outputs, targets = one_hot_logits(torch.tensor([0, 1, 2])), torch.tensor([0, 1, 1])
    assert evaluate("image", outputs, targets)["accuracy"] == 2 / 3
    assert evaluate("sequence", outputs, targets)["accuracy"] == 2 / 3


def test_perplexity_of_a_guess_and_of_an_unlikely_character() -> None:
    targets = torch.tensor([[0, 1, 2]])
    guess = evaluate("next", torch.zeros(1, 3, CLASSES), targets)
    assert guess["perplexity"] == pytest.approx(3)
    assert guess["accuracy"] == 1 / 3
    unlikely = torch.tensor([[[-200.0, 0.0, -300.0]]])
    assert evaluate("next", unlikely, targets[:, :1])["perplexity"] == pytest.approx(math.exp(200))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(VIEWS), st.integers(0, 2**16), st.integers(1, 3))
def test_metrics_do_not_depend_on_the_batches(view: str, seed: int, cut: int) -> None:
    outputs, targets = batch(view, seed)
    evaluation = Evaluation(view, CLASSES, "cpu")
    for part in (slice(0, cut), slice(cut, None)):
        evaluation.update(outputs[part], targets[part])
    assert evaluation.compute() == pytest.approx(evaluate(view, outputs, targets), rel=1e-6)


@pytest.mark.parametrize("view", VIEWS)
def test_a_diverged_model_is_seen(view: str) -> None:
    outputs, targets = batch(view)
    outputs[0] = math.nan
    assert math.isnan(evaluate(view, outputs, targets)["loss"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_and_precision_under_deterministic_algorithms(
    view: str, dtype: torch.dtype, deterministic_algorithms: None
) -> None:
    outputs, targets = batch(view)
    outputs = outputs.to(dtype).requires_grad_()
    loss = objective(view, outputs, targets)
    metrics = evaluate(view, outputs, targets)
    assert loss.dtype == torch.float32
    assert metrics.keys() == METRICS[view]
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert metrics == pytest.approx(evaluate(view, outputs.float(), targets))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("view", VIEWS)
def test_cuda_gives_the_same_under_deterministic_algorithms(view: str, deterministic_algorithms: None) -> None:
    outputs, targets = batch(view, device="cuda")
    objective(view, outputs.requires_grad_(), targets).backward()
    assert outputs.grad is not None and outputs.grad.any()
    assert evaluate(view, outputs, targets) == pytest.approx(evaluate(view, outputs.cpu(), targets.cpu()), rel=1e-6)


@pytest.mark.parametrize("view", ["image", "mask", "sequence", "next"])
def test_predictions_are_int32_classes_in_the_order_of_the_targets(view: str) -> None:
    _, targets = batch(view)
    logits = one_hot_logits(targets)
    answers = predicted(view, logits.movedim(1, -1) if view == "next" else logits)
    assert answers.dtype == torch.int32
    assert answers.tolist() == targets.flatten().tolist()


def test_predictions_of_a_forecast_are_its_values() -> None:
    values = predicted("forecast", torch.tensor([[1.5, 2.0], [3.0, -4.0]], dtype=torch.bfloat16))
    assert values.dtype == torch.float32
    assert values.tolist() == [1.5, 2.0, 3.0, -4.0]


@pytest.mark.parametrize("view", VIEWS)
def test_what_fits_is_let_through(view: str) -> None:
    outputs, targets = batch(view)
    check_targets(view, targets, CLASSES)
    check_outputs(view, outputs, targets, CLASSES)


@pytest.mark.parametrize(
    ("view", "outputs", "needed"),
    [
        ("sequence", (4, 1000), "the model gives (4, 1000), but the 3 classes of the sequence view need (4, 3)"),
        ("image", (4, 3, 1, 1), "the model gives (4, 3, 1, 1), but the 3 classes of the image view need (4, 3)"),
        ("mask", (4, 3, 4, 6), "the model gives (4, 3, 4, 6), but the 3 classes of the mask view need (4, 3, 5, 6)"),
        ("next", (4, 3, 5), "the model gives (4, 3, 5), but the 3 classes of the next view need (4, 5, 3)"),
        ("forecast", (4, 1), "the model gives (4, 1), but the 3 values of the forecast view need (4, 3)"),
    ],
)
def test_refuses_other_outputs(view: str, outputs: tuple[int, ...], needed: str) -> None:
    _, targets = batch(view)
    with pytest.raises(Refusal) as refusal:
        check_outputs(view, torch.zeros(outputs), targets, CLASSES)
    assert str(refusal.value) == needed


def test_refuses_what_is_no_tensor() -> None:
    outputs, targets = batch("image")
    with pytest.raises(Refusal, match=r"the model gives a dict, but the 3 classes of the image view need \(4, 3\)"):
        check_outputs("image", {"out": outputs}, targets, CLASSES)


@pytest.mark.parametrize(("wrong", "run"), [(3, "from 0 to 3"), (-1, "from -1 to 0")])
def test_refuses_targets_beyond_the_classes(wrong: int, run: str) -> None:
    with pytest.raises(Refusal, match=f"the targets run {run}, but 3 classes are numbered 0 to 2"):
        check_targets("image", torch.tensor([0, wrong]), CLASSES)


@pytest.mark.parametrize(
    ("view", "targets", "message"),
    [
        ("mask", torch.zeros(4).long(), r"\(4,\) torch.int64, but the mask view needs \(B, H, W\)"),
        ("image", torch.zeros(4), r"\(4,\) torch.float32, but the image view needs \(B\) torch.int64"),
        ("forecast", torch.zeros(4, 3).double(), r"torch.float64, but the forecast view needs \(B, F\) torch.float32"),
    ],
)
def test_refuses_targets_of_another_view(view: str, targets: Tensor, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        check_targets(view, targets, CLASSES)
