"""What a user might bring to the view custom, right and wrong: models that give and data sets that are asked."""

from typing import Any

import torch
from planted import Plain, plain_data
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import Dataset


class Smoothed(Plain):
    """A classifier with a loss, a metric and a schedule of its own."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy with smoothed labels."""
        return functional.cross_entropy(outputs, targets, label_smoothing=0.1)

    def metrics(self, outputs: Tensor, targets: Tensor) -> dict[str, Any]:
        """How often the class is among the best three, and the number of samples."""
        best = outputs.topk(3).indices == targets[:, None]
        return {"top3": best.any(1).double().mean(), "batch": len(targets)}

    def make_scheduler(self, optimizer: Any, steps: int) -> Any:
        """A tenth of the rate in the second half."""
        return torch.optim.lr_scheduler.MultiStepLR(optimizer, [steps // 2])


class Sequences(Dataset[tuple[Tensor, Tensor]]):
    """Sums of sequences of different lengths, packed."""

    def __init__(self, count: int, seed: int):
        self.count, self.seed = count, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(100 * self.seed + index)
        values = torch.randn(2 + index % 4, 3, generator=generator)
        return values, (values.sum() > 0).long()

    def collate_fn(self, items: list[Any]) -> Any:
        """A packed batch."""
        return pack_sequence([values for values, _ in items], enforce_sorted=False), torch.stack([t for _, t in items])


def sequences() -> Any:
    """Training and test set."""
    return Sequences(16, 1), Sequences(6, 2)


class PackedLstm(nn.Module):
    """An LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 8), nn.Linear(8, 2)

    def forward(self, inputs: Any) -> Tensor:
        """Packed sequences -> (B, 2)."""
        return self.head(self.lstm(inputs)[1][0][0])  # type: ignore[no-any-return]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy."""
        return functional.cross_entropy(outputs, targets)

    def predictions(self, outputs: Tensor) -> Tensor:
        """The classes."""
        return outputs.argmax(1)


class Boxes(Dataset[Any]):
    """Pictures with a bright rectangle, as torchvision's detection networks take them."""

    def __init__(self, count: int, seed: int):
        self.count, self.seed = count, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        generator = torch.Generator().manual_seed(100 * self.seed + index)
        left, top = (int(one) for one in torch.randint(4, 40, (2,), generator=generator))
        picture = torch.rand(3, 64, 64, generator=generator) / 4
        picture[:, top : top + 20, left : left + 20] += 0.7
        box = torch.tensor([[left, top, left + 20, top + 20]], dtype=torch.float32)
        return picture, {"boxes": box, "labels": torch.tensor([1])}

    def collate_fn(self, items: list[Any]) -> Any:
        """Lists, as the networks take them."""
        return [picture for picture, _ in items], [target for _, target in items]


def boxes() -> Any:
    """Training and test set."""
    return Boxes(6, 1), Boxes(3, 2)


class Bad(nn.Module):
    """A model of 8x8 pictures that gives something wrong."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.net = kind, Plain()
        if kind == "cuda":
            self.cuda()
        if kind == "raises":
            raise ValueError("width must be even\nand this is a second line")

    def forward(self, inputs: Tensor) -> Any:
        """As Plain, but for outputs that do not fit."""
        outputs = self.net(inputs)
        if self.kind == "moves":
            return outputs.to("cuda")
        return outputs[:, :7] if self.kind == "outputs" else outputs

    def loss(self, outputs: Tensor, targets: Tensor) -> Any:
        """A loss that cannot be used."""
        each = functional.cross_entropy(outputs, targets, reduction="none")
        wrong = {
            "vector": each,
            "number": 0.5,
            "detached": each.mean().detach(),
            "integer": each.mean().long(),
            "complex": each.mean().to(torch.complex64),
            "nothing": None,
        }
        return wrong.get(self.kind, each.mean())

    def metrics(self, outputs: Tensor, targets: Tensor) -> Any:
        """Figures that cannot be used."""
        wrong = {
            "metric_text": {"top": "high"},
            "metric_vector": {"top": torch.zeros(3)},
            "metric_list": [0.5],
            "metric_clash": {"accuracy": 0.5},
            "metric_loss": {"loss": 0.5},
            "metric_key": {3: 0.5},
            "metric_raises": {"top": outputs @ targets} if self.kind == "metric_raises" else {},
        }
        return wrong.get(self.kind, {})


class Ragged(Dataset[Any]):
    """Items of which the shape changes."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(1, 8, 8 + index % 2), 0


class Nested(Dataset[Any]):
    """Plain pictures, each in a dict beside its number."""

    def __init__(self, data: Any):
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        picture, label = self.data[index]
        return {"pictures": [picture], "number": index}, (label,)


def nested() -> Any:
    """The plain data, nested."""
    return tuple(Nested(part) for part in plain_data())


class NestedPlain(Plain):
    """Plain for nested data; it gives a tuple."""

    def forward(self, inputs: Any) -> Any:  # type: ignore[override]
        """As Plain."""
        return super().forward(inputs["pictures"][0]), inputs["number"]

    def loss(self, outputs: Any, targets: Any) -> Tensor:
        """As the view image has it."""
        return functional.cross_entropy(outputs[0], targets[0])


BAD_DATA = {
    "ragged": lambda: (Ragged(), Ragged()),
    "empty": lambda: ([], []),
    "one": lambda: Ragged(),
    "raises": lambda: 1 / 0,
}


def bad_data(kind: str) -> Any:
    """A data set that cannot be used."""
    return BAD_DATA[kind]()
