"""Models with a planted fault on a CUDA device, and measurements that know nothing of ours."""

import json
import sys
import time
from pathlib import Path

import torch
from planted import Plain
from torch import Tensor, nn

from runner.models.resnet import resnet


class TooLarge(Plain):
    """Asks for more memory than any device has, in the benchmark mode alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        if torch.backends.cudnn.benchmark and self.training:
            torch.empty(2**46, dtype=torch.uint8, device=inputs.device)
        return super().forward(inputs)


class Waits(Plain):
    """Keeps the device busy, and looks at two of its results before it goes on."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, and no other values."""
        table = inputs.new_ones(4096, 4096)
        for _ in range(2):
            for _ in range(20):
                table = table @ table / 4096
            assert table[0, 0].item() == 1.0  # 4096 is a power of 2: every rounding is exact
        return super().forward(inputs)


class WrongIndex(Plain):
    """Reads beyond a tensor on the device, in the benchmark mode alone: no CUDA call of its process works any more."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        outputs = super().forward(inputs)
        index = torch.full((1,), 10**6 if torch.backends.cudnn.benchmark else 0, device=inputs.device)
        return outputs + outputs.new_zeros(3)[index]


class Holds(Plain):
    """Holds a GB of device memory and stays, once `path` names a file; else trains."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, or never."""
        if self.training and self.path:
            self.held = torch.ones(2**30, dtype=torch.uint8, device=inputs.device)
            torch.cuda.synchronize()
            Path(self.path).touch()
            time.sleep(600)
        return super().forward(inputs)


class NotesSpan(Plain):
    """Appends the host's time to a file at each training step: spans of several processes can be compared."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, and slow enough to meet others."""
        if self.training:
            time.sleep(0.05)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic()}\n")
        return super().forward(inputs)


class Stopwatch(nn.Module):
    """A ResNet-18 with two CUDA events of its own: at the forward passes of steps 21 and 121, so around 100 steps.

    The milliseconds of one of them go to the file `path` once training is over.
    """

    def __init__(self, path: str):
        super().__init__()
        self.net = resnet(depth=18, cifar_stem=True, channels=3, classes=10)
        self.path, self.seen = path, 0
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, 10)."""
        self.seen += self.training
        if self.training and self.seen in (21, 121):
            self.events[self.seen == 121].record()
        if not self.training and self.seen > 121:
            begin, end = self.events
            end.synchronize()
            Path(self.path).write_text(str(begin.elapsed_time(end) / 100))
        return self.net(inputs)  # type: ignore[no-any-return]


def convolution_times(*benchmark: bool) -> list[list[float]]:
    """Milliseconds of 20 steps of one convolution in IEEE fp32 under each of these flags in turn, in this process."""
    torch.backends.cudnn.allow_tf32 = False
    inputs = torch.randn(64, 256, 64, 64, device="cuda", requires_grad=True)
    layer = nn.Conv2d(256, 256, 3, padding=1).cuda()
    gradient = torch.randn_like(inputs)
    spans = []
    for flag in benchmark:
        torch.backends.cudnn.benchmark = flag
        for _ in range(20):
            span = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            span[0].record()
            layer(inputs).backward(gradient)
            span[1].record()
            spans.append(span)
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in spans]
    return [times[start : start + 20] for start in range(0, len(times), 20)]


if __name__ == "__main__":
    print(json.dumps(convolution_times(*(word == "True" for word in sys.argv[1:]))))
