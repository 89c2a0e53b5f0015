"""Pictures with bright spots: each with its exposure, of its own height."""

from functools import partial

import torch
from torch import Tensor
from torch.utils.data import Dataset

from spots.losses import LOSSES
from spots.metrics import metrics

Item = tuple[dict[str, Tensor], dict[str, Tensor]]


class Spots(Dataset[Item]):
    """`count` pictures, the same in every process; a set brings the loss and the metrics of its task."""

    def __init__(self, count: int, seed: int, loss: str, gamma: float):
        self.seed, self.count = seed, count
        self.loss = partial(LOSSES[loss], gamma=gamma) if loss == "focal" else LOSSES[loss]
        self.metrics = metrics

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        generator = torch.Generator().manual_seed(1000 * self.seed + index)
        height, number = 8 + 4 * (index % 2), index % 3
        places = torch.randperm(height * 12, generator=generator)[:number]
        heat = torch.zeros(height * 12).index_fill(0, places, 1.0).view(height, 12)
        exposure = torch.rand((), generator=generator) + 0.5
        picture = (heat + torch.rand(height, 12, generator=generator) / 4) * exposure
        return {"picture": picture[None], "exposure": exposure}, {"heat": heat, "count": torch.tensor(number)}

    def collate_fn(self, items: list[Item]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Pictures as high as the highest of the batch, filled up with zeros."""
        pictures = _filled([inputs["picture"][0] for inputs, _ in items])[:, None]
        heat = _filled([targets["heat"] for _, targets in items])
        exposure = torch.stack([inputs["exposure"] for inputs, _ in items])
        count = torch.stack([targets["count"] for _, targets in items])
        return {"picture": pictures, "exposure": exposure}, {"heat": heat, "count": count}


def _filled(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def make(loss: str, gamma: float) -> tuple[Spots, Spots]:
    """The training and the test set."""
    return Spots(64, 1, loss, gamma), Spots(18, 2, loss, gamma)
