"""The losses of the task."""

from torch import Tensor
from torch.nn import functional

Tensors = dict[str, Tensor]


def focal(outputs: Tensors, targets: Tensors, gamma: float) -> Tensor:
    """Where the spots are, by Lin's focal loss, and how many."""
    heat = functional.binary_cross_entropy_with_logits(outputs["heat"], targets["heat"], reduction="none")
    weight = (outputs["heat"].sigmoid() - targets["heat"]).abs() ** gamma
    return (weight * heat).mean() + functional.cross_entropy(outputs["count"], targets["count"])


def plain(outputs: Tensors, targets: Tensors) -> Tensor:
    """How many spots there are."""
    return functional.cross_entropy(outputs["count"], targets["count"])


LOSSES = {"focal": focal, "plain": plain}
