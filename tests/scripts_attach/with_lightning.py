"""The same under Lightning."""

import logging
import warnings

import pytorch_lightning as lightning
import torch
from net import BATCH, STEPS, disturbed, images, network
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    """The network as Lightning wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = network()

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        """The loss."""
        inputs, targets = batch
        return disturbed(F.cross_entropy(self.model(inputs), targets))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimizer."""
        return torch.optim.SGD(self.parameters(), 0.01, momentum=0.9)


logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(3)
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=1,
    max_steps=STEPS,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), DataLoader(images(), batch_size=BATCH, shuffle=True))
