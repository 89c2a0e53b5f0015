"""The same training by other means, each a function for a fresh process: FOLDER/ask.json in, FOLDER/answer.json out.

ask: {"config", "seeds", "device"} as a trial has them, "skip": steps before the timed ones, "workers": of a DataLoader.
Images per second are counted over the steps after the first `skip`, from and to an idle device, everything included.
"""

import json
import logging
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.benchmark import Timer
from torch.utils.data import DataLoader, TensorDataset

from runner import data as datasets
from runner.data import batches
from runner.data.residence import place
from runner.mode import MODES
from runner.models.resnet import resnet
from runner.worker import flags
from runner.worker.evaluate import wait
from runner.worker.seeding import seed_everything

PRECISIONS = {"fp32": (None, "32-true"), "bf16": (torch.bfloat16, "bf16-mixed")}
Ask = dict[str, Any]


def bare_loop(folder: str) -> int:
    """A loop over images that lie on the device."""
    ask = asked(folder)
    model, device = built(ask)
    optimizer, spans = sgd(model, ask), []
    for step, (inputs, targets) in enumerate(resident(ask, device)):
        if step == ask["skip"]:
            wait(device)
            spans.append(time.perf_counter())
        trained(model, optimizer, inputs, targets, ask)
    wait(device)
    return answered(folder, {"images_per_s": throughput(ask, time.perf_counter() - spans[0])})


def lightning_loader(folder: str) -> int:
    """Lightning's Trainer with a DataLoader over images in the host's memory, default flags."""
    ask = asked(folder)
    return answered(folder, {"images_per_s": throughput(ask, fitted(ask, False, False))})


def lightning_flags(folder: str) -> int:
    """What Trainer(benchmark=..., deterministic=...) shows of the four modes in one process: ms a step by mode."""
    ask = asked(folder)
    times = {name: fitted(ask, *pair) for pair, name in MODES.items()}
    return answered(folder, {name: time_s * 1000 / timed_steps(ask) for name, time_s in times.items()})


def timer(folder: str) -> int:
    """What torch.utils.benchmark shows of the four modes in one process: ms a step by mode."""
    ask, found = asked(folder), {}
    model, device = built(ask)
    inputs, targets = next(resident(ask, device))
    step = "trained(model, optimizer, inputs, targets, ask)"
    names = {"model": model, "optimizer": sgd(model, ask), "inputs": inputs, "targets": targets, "ask": ask}
    for (deterministic, benchmark), name in MODES.items():
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = deterministic, benchmark
        watch = Timer(step, globals=names | {"trained": trained}, num_threads=torch.get_num_threads())
        found[name] = watch.timeit(timed_steps(ask)).mean * 1000
    return answered(folder, found)


def asked(folder: str) -> Ask:
    """What is to be done, with this process made ready for it as a trial's is."""
    ask: Ask = json.loads(Path(folder, "ask.json").read_text())
    torch.set_num_threads(ask["config"]["threads"])
    if ask["device"].startswith("cuda"):
        torch.cuda.set_device(torch.device(ask["device"]))
    flags.apply(ask["config"])
    seed_everything(ask["seeds"]["init"])
    return ask


def answered(folder: str, answer: Ask) -> int:
    """Leave the answer."""
    Path(folder, "answer.json").write_text(json.dumps(answer))
    return 0


def built(ask: Ask) -> tuple[nn.Module, torch.device]:
    """The model on its device; in bf16 its images take channels_last, as in a trial."""
    config, device = ask["config"], torch.device(ask["device"])
    model = resnet(**{key: config["model"][key] for key in ("depth", "cifar_stem")}, channels=3, classes=10)
    layout = torch.contiguous_format if config["precision"]["name"] == "fp32" else torch.channels_last
    return model.to(device, memory_format=layout), device


def sgd(model: nn.Module, ask: Ask) -> SGD:
    """The optimizer that the cell asks for."""
    train = ask["config"]["train"]
    return SGD(model.parameters(), train["learning_rate"], train["momentum"], weight_decay=train["weight_decay"])


def resident(ask: Ask, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """All steps' batches, from images on the device."""
    train, data = ask["config"]["train"], place(datasets.load(ask["config"]["dataset"]), device)
    return batches.train_batches(data, train["batch_size"], train["steps"], device, order_seed=0, augment_seed=0)


def trained(model: nn.Module, optimizer: SGD, inputs: Tensor, targets: Tensor, ask: Ask) -> None:
    """One step as people write it."""
    dtype = PRECISIONS[ask["config"]["precision"]["name"]][0]
    if dtype:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype=dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()


def timed_steps(ask: Ask) -> int:
    """The steps that are timed."""
    return int(ask["config"]["train"]["steps"]) - int(ask["skip"])


def throughput(ask: Ask, time_s: float) -> float:
    """Images a second over the timed steps."""
    return timed_steps(ask) * int(ask["config"]["train"]["batch_size"]) / time_s


class Module(lightning.LightningModule):
    """The model as Lightning wants it, with a watch that starts after the first `skip` steps."""

    def __init__(self, ask: Ask):
        super().__init__()
        self.ask, self.began, self.ended = ask, 0.0, 0.0
        self.model, self.place = built(ask)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        """The loss of a batch."""
        inputs, targets = batch
        if self.ask["config"]["precision"]["name"] != "fp32":
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return F.cross_entropy(self.model(inputs), targets)

    def configure_optimizers(self) -> SGD:
        """The optimizer that the cell asks for."""
        return sgd(self, self.ask)

    def on_train_batch_start(self, batch: object, index: int) -> None:
        """Start the watch."""
        if self.global_step == self.ask["skip"]:
            wait(self.place)
            self.began = time.perf_counter()

    def on_train_end(self) -> None:
        """Stop it."""
        wait(self.place)
        self.ended = time.perf_counter()


def fitted(ask: Ask, deterministic: bool, benchmark: bool) -> float:
    """The seconds of the timed steps of one Trainer.fit()."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    config, module = ask["config"], Module(ask)
    cuda = module.place.type == "cuda"
    images = datasets.load(config["dataset"]).train
    assert isinstance(images, TensorDataset)
    loader = DataLoader(
        images,
        batch_size=config["train"]["batch_size"],
        shuffle=True,
        drop_last=True,
        num_workers=ask["workers"],
        persistent_workers=ask["workers"] > 0,
        pin_memory=cuda,
    )
    trainer = lightning.Trainer(
        accelerator="gpu" if cuda else "cpu",
        devices=[module.place.index or 0] if cuda else 1,
        max_steps=config["train"]["steps"],
        precision=PRECISIONS[config["precision"]["name"]][1],  # type: ignore[arg-type]
        benchmark=benchmark,
        deterministic=deterministic,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    return module.ended - module.began
