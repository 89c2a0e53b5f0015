"""The mean intersection over union of a segmentation."""

import torch
from torch import Tensor
from torchmetrics.classification import MulticlassJaccardIndex


class MeanIoU(MulticlassJaccardIndex):
    """Intersection over union, averaged over the classes that occur in the targets or in the predictions."""

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count each pair of predicted and true class; both tensors hold class numbers and have one shape."""
        # torchmetrics avoids bincount under deterministic algorithms, at a memory of pixels x classes**2 numbers; yet
        # without weights bincount is deterministic.
        pairs = target.flatten() * self.num_classes + preds.flatten()
        self.confmat += torch.bincount(pairs, minlength=self.num_classes**2).view_as(self.confmat)
