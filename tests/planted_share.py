"""Models whose behaviour depends on what lies on disk, and that harm what runs them: for tests of shared studies."""

import os
import time
from contextlib import suppress
from pathlib import Path

import torch
from planted import Plain
from torch import Tensor


class Slow(Plain):
    """Takes its time in every step."""

    def __init__(self, step_s: float = 0.05):
        super().__init__()
        self.step_s = step_s

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, later."""
        if self.training:
            time.sleep(self.step_s)
        return super().forward(inputs)


class SlowLater(Plain):
    """Takes its time once, in the step after the last one that a pilot does."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds, self.seen = seconds, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, in the eleventh step later."""
        self.seen += self.training
        if self.training and self.seen == 11:
            time.sleep(self.seconds)
        return super().forward(inputs)


class Hangs(Plain):
    """Writes the number of its process to a file and stays in its third step."""

    def __init__(self, path: str):
        super().__init__()
        self.path, self.seen = Path(path), 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain until the third step."""
        self.seen += self.training
        if self.seen == 3:
            self.path.write_text(str(os.getpid()))
            time.sleep(600)
        return super().forward(inputs)


class FailsWhile(Plain):
    """Fails in its third step in the benchmark mode while there is a file."""

    def __init__(self, path: str):
        super().__init__()
        self.path, self.seen = Path(path), 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where the file is not."""
        self.seen += self.training
        if self.seen == 3 and torch.backends.cudnn.benchmark and self.path.exists():
            raise RuntimeError("planted failure while the file is there")
        return super().forward(inputs)


class WaitsWhile(Plain):
    """Waits in its first step while there is a file."""

    def __init__(self, path: str):
        super().__init__()
        self.path = Path(path)

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain once the file has gone."""
        while self.path.exists():
            time.sleep(0.02)
        return super().forward(inputs)


class FillsDisk(Plain):
    """Fills the disk of a folder in its third step, until `pages` of 4 KiB are left; once, not when done again."""

    def __init__(self, folder: str, pages: int):
        super().__init__()
        self.folder, self.pages, self.seen = Path(folder), pages, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain."""
        self.seen += self.training
        if self.seen == 3 and not (self.folder / ".filled").exists():
            fill(self.folder, self.pages)
        return super().forward(inputs)


def fill(folder: Path, pages: int = 0) -> None:
    """Fill the disk of a folder but for some pages, by the file `.filled`."""
    with open(folder / ".filled", "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    kept = max(0, (folder / ".filled").stat().st_size - pages * 4096)
    os.truncate(folder / ".filled", kept)


class KillsInvoker(Plain):
    """Kills the invocation that does it where the simulated card has this name."""

    def __init__(self, card: str):
        super().__init__()
        if os.environ.get("SIMULATED_CARD") == card:
            server = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(server.rpartition(")")[2].split()[1]), 9)
            time.sleep(600)  # ended with the forkserver


class Noted(Slow):
    """Notes when its training began and ended, a line `BEGIN END` on the clock that all processes share."""

    def __init__(self, path: str, step_s: float = 0.05):
        super().__init__(step_s)
        self.path, self.began = path, 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Slow."""
        self.began = self.began or time.monotonic()
        outputs = super().forward(inputs)
        if not self.training:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{self.began} {time.monotonic()}\n")
        return outputs
