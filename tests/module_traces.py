"""Small trainings under the probe of modules, and what their traces hold."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD
from traced import trial_of

from runner.layout import trace_file
from runner.operation import Operation
from runner.trace import Trace
from runner.worker.digest import lanes
from runner.worker.modules import ModuleProbe

CPU = torch.device("cpu")


def probe_for(model: nn.Module, steps: int = 1, number: int = 0, precision: str = "fp32") -> ModuleProbe:
    return ModuleProbe(trial_of("modules", steps, number, precision={"name": precision}), model, CPU)


def train(
    model: nn.Module,
    inputs: Tensor,
    probe: Any = None,
    steps: int = 1,
    dtype: torch.dtype | None = None,
    loss: Callable[[Any], Tensor] = lambda outputs: outputs.float().square().mean(),
    rate: float = 0.1,
) -> list[Tensor]:
    """Train as the runner does; the weights at the end."""
    torch.manual_seed(5)
    probe = probe or probe_for(model, steps=0)
    optimizer, scaler = (
        SGD(model.parameters(), rate, momentum=0.9),
        torch.amp.GradScaler("cpu", enabled=dtype is torch.float16),
    )
    for step in range(1, steps + 1):
        with probe.step(step):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                value = loss(model(inputs))
            scaler.scale(value).backward()
            with probe.optimizing():
                scaler.step(optimizer)
                scaler.update()
    return list(model.state_dict().values())


def traced(model: nn.Module, inputs: Any, steps: int = 1, number: int = 0, **how: Any) -> Trace:
    probe = probe_for(model, steps, number)
    train(model, inputs, probe, steps, **how)
    return written(probe)


def written(probe: ModuleProbe) -> Trace:
    """What the probe leaves, read again."""
    with TemporaryDirectory() as folder:
        probe.write(Path(folder))
        return Trace.read(trace_file(Path(folder)))


def forward(trace: Trace) -> list[tuple[str, str]]:
    return [(one.name, one.module) for one in trace.operations if one.part == "forward"]


def of(trace: Trace, module: str, part: str = "forward", step: int = 1) -> Operation:
    found = [one for one in trace.operations if (one.module, one.part, one.step) == (module, part, step)]
    assert len(found) == 1
    return found[0]


def hexed(tensor: Tensor) -> str:
    return lanes([tensor]).numpy().tobytes().hex()


class Block(nn.Module):
    """A residual block with an in-place ReLU that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.norm(self.relu(self.conv(inputs)))
        outputs += inputs
        return self.relu(outputs)


def images(size: int = 4) -> Tensor:
    return torch.randn(3, 2, size, size, generator=torch.Generator().manual_seed(1))


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make()
