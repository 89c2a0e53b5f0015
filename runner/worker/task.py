"""What the view of the data decides: the loss, the metrics, what counts as a prediction, which shapes fit.

Shapes: B samples, C classes, H x W pixels, T steps, F values.

| view     | outputs      | targets         | metrics beside "loss"       |
|----------|--------------|-----------------|-----------------------------|
| image    | (B, C)       | (B,) int64      | accuracy                    |
| mask     | (B, C, H, W) | (B, H, W) int64 | pixel_accuracy, mean_iou    |
| sequence | (B, C)       | (B,) int64      | accuracy                    |
| next     | (B, T, C)    | (B, T) int64    | accuracy, perplexity        |
| forecast | (B, F)       | (B, F) float32  | mae                         |
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from runner.errors import Refusal

if TYPE_CHECKING:
    from runner.worker.mean_iou import MeanIoU

TARGET_AXES = {"image": ("B",), "mask": ("B", "H", "W"), "sequence": ("B",), "next": ("B", "T"), "forecast": ("B", "F")}
SCORES = {
    "image": "accuracy",
    "mask": "pixel_accuracy",
    "sequence": "accuracy",
    "next": "accuracy",
    "forecast": "mae",
}
# The names of all figures of a view.
METRICS: dict[str, tuple[str, ...]] = {view: ("loss", score) for view, score in SCORES.items()}
METRICS |= {"mask": (*METRICS["mask"], "mean_iou"), "next": (*METRICS["next"], "perplexity")}


def main_output(outputs: Any) -> Any:
    """What the view is about: a dict's entry "out", as torchvision's segmentation networks give it, or all of it."""
    return outputs["out"] if isinstance(outputs, Mapping) and "out" in outputs else outputs


def objective(view: str, outputs: Tensor, targets: Tensor, reduction: Literal["mean", "none"] = "mean") -> Tensor:
    """The training loss as a float32 scalar: mean squared error for a forecast, else cross entropy in nats.

    The mean is over every sample, pixel, character or value; with `reduction` "none" they come one by one.
    """
    outputs = outputs.float()
    if view == "forecast":
        return F.mse_loss(outputs, targets, reduction=reduction)
    if view == "next":
        outputs, targets = outputs.flatten(0, 1), targets.flatten()
    if view == "mask" and reduction == "mean" and torch.are_deterministic_algorithms_enabled():
        # On CUDA the usual mean over pixels adds atomically and is refused under this switch; this one is not.
        # Without the switch the usual one stays: that its value jitters is something to be measured.
        return F.cross_entropy(outputs, targets, reduction="none").mean()
    return F.cross_entropy(outputs, targets, reduction=reduction)


@torch.no_grad()
def predicted(view: str, outputs: Tensor) -> Tensor:
    """What the model says, flattened in the order of the targets: int32 classes, or a forecast's float32 values."""
    if view == "forecast":
        return outputs.float().flatten()
    return outputs.argmax(dim=-1 if view == "next" else 1).int().flatten()


class Evaluation:
    """The metrics of a whole evaluation set, whatever its batches: sums are kept in float64, counts as integers."""

    def __init__(self, view: str, classes: int, device: torch.device | str):
        self.view = view
        self.loss = _Mean(device)
        self.score = _Mean(device)
        self.mean_iou = _mean_iou(classes, device) if view == "mask" else None

    @torch.no_grad()
    def update(self, outputs: Tensor, targets: Tensor) -> None:
        """Count in one batch; shapes as in the module's table."""
        answers = predicted(self.view, outputs).view_as(targets)
        self.loss.update(objective(self.view, outputs, targets, reduction="none"))
        self.score.update((answers - targets).abs() if self.view == "forecast" else answers == targets)
        if self.mean_iou is not None:
            self.mean_iou.update(answers, targets)

    def compute(self) -> dict[str, float]:
        """The metrics by name: loss in nats or squared target units, mae in target units, the others pure numbers."""
        loss = self.loss.compute()
        metrics = {"loss": loss, SCORES[self.view]: self.score.compute()}
        if self.view == "next":
            # torchmetrics' Perplexity takes the logarithm after the softmax: infinite for one unlikely character.
            metrics["perplexity"] = loss.exp()
        if self.mean_iou is not None:
            metrics["mean_iou"] = self.mean_iou.compute()
        return {name: float(value) for name, value in metrics.items()}


def _mean_iou(classes: int, device: torch.device | str) -> "MeanIoU":
    from runner.worker.mean_iou import MeanIoU  # torchmetrics takes two seconds: only who needs it waits

    return MeanIoU(classes, validate_args=False).to(device)


class _Mean:
    """The mean of all values so far, of any shape, as a float64 scalar; one that is NaN makes it NaN."""

    def __init__(self, device: torch.device | str):
        self.total, self.count = torch.zeros((), dtype=torch.float64, device=device), 0

    def update(self, values: Tensor) -> None:
        self.total += values.double().sum()
        self.count += values.numel()

    def compute(self) -> Tensor:
        return self.total / self.count


def check_targets(view: str, targets: Any, classes: int) -> None:
    """Refuse targets that do not fit the view or the number of classes. Waits for the device."""
    dtype = torch.float32 if view == "forecast" else torch.int64
    tensor = isinstance(targets, Tensor)
    if not tensor or targets.dim() != len(TARGET_AXES[view]) or targets.dtype != dtype:
        found, needed = tuple(targets.shape) if tensor else "a", ", ".join(TARGET_AXES[view])
        kind = targets.dtype if tensor else type(targets).__name__
        raise Refusal(f"the targets are {found} {kind}, but the {view} view needs ({needed}) {dtype}")
    if view != "forecast" and (targets.min() < 0 or targets.max() >= classes):
        low, high = int(targets.min()), int(targets.max())
        raise Refusal(f"the targets run from {low} to {high}, but {classes} classes are numbered 0 to {classes - 1}")


def check_outputs(view: str, outputs: object, targets: Tensor, classes: int) -> None:
    """Refuse a model whose outputs do not fit the targets. Looks at shapes alone, so it may stand in a timed span."""
    needed = _output_shape(view, targets, classes)
    given = tuple(outputs.shape) if isinstance(outputs, Tensor) else f"a {type(outputs).__name__}"
    if given != needed:
        kind = "values" if view == "forecast" else "classes"
        raise Refusal(f"the model gives {given}, but the {classes} {kind} of the {view} view need {needed}")


def _output_shape(view: str, targets: Tensor, classes: int) -> tuple[int, ...]:
    if view == "forecast":
        return tuple(targets.shape)
    if view == "next":
        return (*targets.shape, classes)
    return (targets.shape[0], classes, *targets.shape[1:])
