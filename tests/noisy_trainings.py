"""Trainings of the shipped models in this process on tiny data, under the probe of operations, with noise below it."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import torch
from composed import planted_config
from planted_ops import How, Noise
from torch import Tensor, nn

from runner.analysis.traces import compare
from runner.cell import Cell
from runner.layout import trace_file
from runner.models.lstm import lstm
from runner.models.resnet import resnet
from runner.models.unet import unet
from runner.operation import Operation
from runner.trace import Trace
from runner.trial import Trial
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.probe import probe_of
from runner.worker.train import train_model

CLASSES = 5
Draw = Callable[[torch.Generator], tuple[Tensor, Tensor]]
Below = Callable[[nn.Module], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Workload:
    """A model with tiny data for it, of a view, and what else is set; `quick` begins the names in the quick tests."""

    model: Callable[[], nn.Module]
    view: str
    draw: Draw
    words: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("aten.",)


def images(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four images of 8x8 and their classes."""
    return torch.randn(4, 1, 8, 8, generator=generator), torch.randint(CLASSES, (4,), generator=generator)


def masks(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two images of 8x8 and a class for each pixel."""
    return torch.randn(2, 1, 8, 8, generator=generator), torch.randint(CLASSES, (2, 8, 8), generator=generator)


def sequences(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four sequences of 3 steps with 3 numbers, and their classes."""
    return torch.randn(4, 3, 3, generator=generator), torch.randint(CLASSES, (4,), generator=generator)


def characters(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four texts of 5 characters, and the characters that follow."""
    text = torch.randint(CLASSES, (4, 6), generator=generator)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def recurrent(cell: Literal["lstm", "gru"], features: int | None, vocabulary: int | None = None) -> nn.Module:
    """Two layers with dropout between them; those of the LSTM over numbers go both ways."""
    both = cell == "lstm" and vocabulary is None
    return lstm(cell, 2, 8, both, 0.5, CLASSES, features, vocabulary, every_step=vocabulary is not None)


SGD, HALF = "train.optimizer=sgd", "precision=bf16"
# A step of the residual network costs the most: of it come the operations that the others do not have.
ONLY_RESNET = ("aten.convolution", "aten.native_batch_norm", "aten.max_pool", "aten.mean", "aten.addmm", "aten.add.")
WORKLOADS = {
    "resnet": Workload(lambda: resnet(10, False, 1, CLASSES), "image", images, (SGD,), ONLY_RESNET),
    "unet-transposed": Workload(lambda: unet(4, 1, "transposed", 1, CLASSES), "mask", masks),
    "unet-bilinear": Workload(lambda: unet(4, 1, "bilinear", 1, CLASSES), "mask", masks, (SGD,)),
    "unet-half": Workload(lambda: unet(4, 1, "bilinear", 1, CLASSES), "mask", masks, (HALF,)),
    "lstm-sequences": Workload(lambda: recurrent("lstm", 3), "sequence", sequences),
    "lstm-characters": Workload(lambda: recurrent("lstm", None, CLASSES), "next", characters, (SGD,)),
    "gru": Workload(lambda: recurrent("gru", 3), "sequence", sequences, (SGD,)),
}


@cache
def cell_of(name: str, steps: int, again: bool) -> Cell:
    """The cell of a workload with so many steps traced; `again`: with every operation repeated."""
    work = WORKLOADS[name]
    config = planted_config("Plain", *work.words, "probe=ops", f"probe.steps={steps}", f"probe.repeat={again}")
    return Cell(config | {"dataset": config["dataset"] | {"view": work.view}})


def nothing(_: nn.Module) -> AbstractContextManager[Any]:
    """Nothing is planted."""
    return nullcontext()


def traced(folder: Path, name: str, number: int, steps: int, again: bool, below: Below = nothing) -> Trace:
    """Train in this process under the probe; `below` gives what lies between it and PyTorch: noise in an operation."""
    cell, generator = cell_of(name, steps, again), torch.Generator().manual_seed(5)
    torch.manual_seed(7)
    model = WORKLOADS[name].model().train()
    probe = probe_of(Trial.of(cell, number, 0, "cpu"), model, torch.device("cpu"))
    batches = iter([WORKLOADS[name].draw(generator) for _ in range(steps)])
    with below(model):
        task = Task(WORKLOADS[name].view, CLASSES)
        train_model(model, task, batches, cell.config, steps, Clock(None), lambda: None, probe)
    probe.write(folder)
    return Trace.read(trace_file(folder))


@dataclass(frozen=True)
class Plant:
    """An operation of a clean trace that is made noisy, by its calls as the noise counts them."""

    operation: Operation
    calls: tuple[int, ...]


def plants(clean: Trace, key: Callable[[Operation], Any]) -> list[Plant]:
    """For each key the last operation that has it, of those whose bits follow from what goes in."""
    seen: Counter[tuple[int, str]] = Counter()
    chosen: dict[Any, Plant] = {}
    for operation in clean.operations:
        place = operation.step, operation.name
        calls = 1 if operation.repeated is None else 2
        if operation.kind in ("computed", "random") and has_bits(operation):
            chosen[key(operation)] = Plant(operation, tuple(range(seen[place], seen[place] + calls)))
        seen[place] += calls
    return list(chosen.values())


def has_bits(operation: Operation) -> bool:
    """Whether it gives or changes a tensor with elements."""
    changed = operation.outputs or tuple(operation.inputs[place] for place in operation.writes)
    return any(0 not in value.shape for value in changed)


def what_is_found(clean: Trace, noisy: Trace) -> list[Any]:
    """Everything that the comparison names: where, and what came of repeating."""
    found = compare([clean, noisy])
    assert found.operations == len(clean.operations) == len(noisy.operations)
    return [(one.rung, *where(one), one.repeats) for one in found.findings]


def where(one: Any) -> tuple[Any, ...]:
    """An operation's or a finding's place."""
    return one.step, one.index, one.part, one.name, one.module, one.line


def expected(plant: Plant, how: How) -> list[Any]:
    """The planted operation alone."""
    kinds = {"process": "differs between processes", "repeat": "differs when repeated"}
    return [("operation", *where(plant.operation), kinds[how] if plant.operation.repeated else None)]


def kind(one: Operation) -> Any:
    """What the quick tests plant into: each kind of operation of a part."""
    return one.part, one.name


def place(one: Operation) -> Any:
    """What the slow ones plant into: each kind at each line of each module."""
    return one.part, one.name, one.module, one.line


def wrongly_found(chosen: list[Plant], hows: list[How], clean: Trace, train: Callable[[Below], Trace]) -> list[Any]:
    """Plant into one operation after the other, in each of these ways in turn: where the answer is wrong."""
    wrong = []
    for plant, how in zip(chosen, cycle(hows)):
        noise = Noise(plant.operation.name, plant.calls, how, plant.operation.step, identity=5)
        found = what_is_found(clean, train(noise.follow))
        if found != expected(plant, how):
            wrong.append((how, where(plant.operation), found))
    return wrong


WAYS: list[tuple[bool, How]] = [(False, "process"), (True, "process"), (True, "repeat")]


def planted_everywhere(folder: Path, name: str, again: bool, how: How) -> tuple[int, list[Any]]:
    """Plant into each operation in each place of two steps: how many, and where the answer is wrong."""
    clean = traced(folder, name, 0, 2, again)
    chosen = plants(clean, kind if name == "resnet" else place)
    return len(chosen), wrongly_found(chosen, [how], clean, partial(traced, folder, name, 1, 2, again))
