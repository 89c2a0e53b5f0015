"""torchvision's Faster R-CNN over a feature pyramid, untrained, and how many boxes it finds."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torchvision.models import get_model
from torchvision.ops import box_iou

LEAST_IOU = LEAST_SCORE = 0.5


def faster_rcnn(backbone: Literal["resnet50", "mobilenet_v3_large"], min_size: int, classes: int) -> nn.Module:
    """Lists of images (3, H, W) within [0, 1] to a dict of losses in training, else to a dict of detections an image.

    In training it takes targets too: a dict an image of boxes (n, 4) as left, top, right, bottom in pixels, and labels
    (n,) from 1 to `classes`. Images are scaled to `min_size` pixels of the shorter side, the longer at most 5/3 of it.
    """
    network: Any = get_model(
        f"fasterrcnn_{backbone}_fpn",
        weights=None,
        weights_backbone=None,
        num_classes=classes + 1,  # and the background
        min_size=min_size,
        max_size=5 * min_size // 3,
    )
    network.metrics = metrics
    return network  # type: ignore[no-any-return]


def metrics(outputs: list[dict[str, Tensor]], targets: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """boxes_found: the share of an image's boxes that a detection meets, as the mean over the images.

    A detection meets a box if it has its label, a score of at least 0.5, and an intersection over union with it of at
    least 0.5; what else is detected does not count. An image without boxes has a share of 1.
    """
    return {"boxes_found": torch.stack([_share(*pair) for pair in zip(outputs, targets, strict=True)]).mean()}


def _share(detected: dict[str, Tensor], there: dict[str, Tensor]) -> Tensor:
    same = (there["labels"][:, None] == detected["labels"]) & (detected["scores"] >= LEAST_SCORE)
    met = (same & (box_iou(there["boxes"], detected["boxes"]) >= LEAST_IOU)).any(1)
    return met.float().mean() if len(met) else torch.ones((), device=met.device)
