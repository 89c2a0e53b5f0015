"""The same under Hugging Face's Trainer."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from net import BATCH, STEPS, disturbed, images, network
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments, set_seed


class Classifier(nn.Module):
    """The network as the Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = network()

    def forward(self, pixels: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Loss and logits."""
        logits = self.model(pixels)
        return {"loss": disturbed(F.cross_entropy(logits, labels)), "logits": logits}


class Items(torch.utils.data.Dataset[dict[str, Any]]):
    """The images by name."""

    def __init__(self) -> None:
        self.images = images()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, Any]:
        pixels, label = self.images[index]
        return {"pixels": pixels, "labels": label}


set_seed(3)
with TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=str(Path(folder)),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        optim="sgd",
        learning_rate=0.01,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    Trainer(model=Classifier(), args=arguments, train_dataset=Items()).train()
