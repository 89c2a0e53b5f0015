"""The figures of the task."""

from torch import Tensor

Tensors = dict[str, Tensor]


def metrics(outputs: Tensors, targets: Tensors) -> Tensors:
    """How often the count is right, and how far the heat lies off."""
    right = outputs["count"].argmax(1) == targets["count"]
    return {
        "count_accuracy": right.double().mean(),
        "heat_mae": (outputs["heat"].sigmoid() - targets["heat"]).abs().mean(),
    }
