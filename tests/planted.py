"""Models and data sets with a planted fault: what the product must find out is known here."""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset


class Plain(nn.Module):
    """A small classifier of 8x8 images with nothing wrong."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


class NoisyFrom(Plain):
    """Adds noise from the operating system to its outputs, from training step `step` on."""

    def __init__(self, step: int):
        super().__init__()
        self.step, self.seen = step, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, with noise that no seed reaches."""
        outputs = super().forward(inputs)
        self.seen += self.training
        if self.training and self.seen >= self.step:
            outputs = outputs * (1 + int.from_bytes(os.urandom(2), "big") / 1e4)
        return outputs


class NoisyUnlessDeterministic(NoisyFrom):
    """The same, unless cuDNN was asked for deterministic kernels."""

    def __init__(self, step: int):
        super().__init__(step)
        if torch.backends.cudnn.deterministic:
            self.step = sys.maxsize


class NoisyLoss(Plain):
    """The value of its outputs is noisy, the gradient is not: the loss differs, the weights do not."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain; a constant is added to all logits of the loss through a custom gradient."""
        outputs = super().forward(inputs)
        return _NoiseWithoutGradient.apply(outputs) if self.training else outputs  # type: ignore[no-any-return]


class _NoiseWithoutGradient(torch.autograd.Function):
    """Scales forward by noise and hands the gradient of a fixed function back."""

    @staticmethod
    def forward(context: Any, outputs: Tensor) -> Tensor:
        return outputs + int.from_bytes(os.urandom(2), "big") / 1e4 * torch.eye(10)[0]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return torch.ones_like(gradient) / gradient.numel()


class SetOrder(nn.Module):
    """Takes its activations in the order of a set of strings, which depends on the interpreter's hash seed."""

    def __init__(self) -> None:
        super().__init__()
        names = {"ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "Softplus", "ELU", "Softsign", "Mish", "CELU"}
        layers = [layer for name in names for layer in (nn.Linear(64, 64), getattr(nn, name)())]
        self.net = nn.Sequential(nn.Flatten(), *layers, nn.Linear(64, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        return self.net(inputs)  # type: ignore[no-any-return]


class FlipsFlag(Plain):
    """Switches cudnn.benchmark on in its constructor, whatever was asked for."""

    def __init__(self) -> None:
        super().__init__()
        torch.backends.cudnn.benchmark = True


class Fails(Plain):
    """Fails in a training step, in the way named by `how`."""

    def __init__(self, step: int, how: str):
        super().__init__()
        self.step, self.how, self.seen = step, how, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain until the step comes."""
        self.seen += self.training
        if self.training and self.seen == self.step:
            if self.how == "exit":
                os._exit(7)
            if self.how == "sys.exit":
                sys.exit(3)
            if self.how == "server":
                os.kill(os.getppid(), 9)
                time.sleep(600)  # the kernel ends this process too, as soon as it notices
            if self.how == "kill":
                os.kill(os.getpid(), 9)
            if self.how == "crash":
                os.abort()
            if self.how == "diverge":
                return super().forward(inputs) * float("nan")
            if self.how == "hang":
                time.sleep(600)
            raise RuntimeError(f"planted failure in step {self.step}")
        return super().forward(inputs)


def plain_data(items: int = 128) -> tuple[Dataset[Any], Dataset[Any]]:
    """Images of 8x8 and ten classes, the same in every process: training and test set."""
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(items, 1, 8, 8, generator=generator)
    targets = torch.randint(10, (items,), generator=generator)
    half = items // 2
    return TensorDataset(inputs, targets), TensorDataset(inputs[:half], targets[:half])


class OneBatchChanged(Dataset[Any]):
    """The items of the step-th batch carry noise that differs from process to process."""

    def __init__(self, items: Dataset[Any], step: int):
        self.items, self.step, self.batches = items, step, 0

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A whole batch at once: how a DataLoader asks where it can."""
        self.batches += 1
        noise = int.from_bytes(os.urandom(4), "big") / 1e9 if self.batches == self.step else 0.0
        return [(inputs + noise, target) for inputs, target in map(self.items.__getitem__, indices)]


def changed_at(step: int) -> tuple[Dataset[Any], Dataset[Any]]:
    """plain_data whose training batch number `step` differs from process to process."""
    train, test = plain_data()
    return OneBatchChanged(train, step), test


class BreaksStore(Plain):
    """Overwrites a file of the study's process, a tracking store above all."""

    def __init__(self, path: str):
        super().__init__()
        Path(path).write_bytes(b"no database any more" * 100)


class LosesStudy(Plain):
    """Takes study.json away, as a user may who clears up while a study works: the next job finds no study."""

    def __init__(self, folder: str):
        super().__init__()
        Path(folder, "study.json").unlink()


class Masked(Plain):
    """Has an infinite buffer, as a causal attention mask has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))


class NoEngine(Plain):
    """Fails as cuDNN does when it finds no plan, in the benchmark mode alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain where benchmark is off."""
        if torch.backends.cudnn.benchmark:
            raise RuntimeError("FIND was unable to find an engine to execute this computation")
        return super().forward(inputs)


class LeavesProcess(Plain):
    """Starts a process that would outlive the trial, and writes its pid to a file."""

    def __init__(self, path: str):
        super().__init__()
        Path(path).write_text(str(subprocess.Popen(["sleep", "600"]).pid))


class RemovesFolder(Plain):
    """Removes the folder of its own trial."""

    def __init__(self, study: str):
        super().__init__()
        for folder in Path(study).glob("cells/*/trial-*"):
            shutil.rmtree(folder)


def own_folder() -> Path:
    """The folder of the trial that this process does: its log is in it."""
    return Path(os.readlink("/proc/self/fd/2")).parent


def segfault() -> None:
    """Read at address 0, in C."""
    ctypes.string_at(0)


def want_memory() -> None:
    """Take memory until the system, by a limit of this process's own, gives no more."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**28, size + 2**28))
    kept = []
    while True:
        kept.append(bytearray(2**24))


def hold_the_lock() -> None:
    """Sleep in C without giving Python's lock away: no handler and no thread of this process runs any more."""
    ctypes.PyDLL(None).sleep(600)


def backtrack() -> None:
    """Match a regular expression that takes for ever: the same, as users meet it."""
    import re

    re.match(r"(a+)+$", "a" * 64 + "b")


def stop() -> None:
    """Stop as a debugger or Ctrl-Z does: this process takes no signal but SIGKILL."""
    os.kill(os.getpid(), signal.SIGSTOP)


def flood(status: int) -> None:
    """Print 50 MB and end without a record."""
    line = b"x" * 1023 + b"\n"
    for _ in range(50):
        os.write(2, line * 1024)
    os.write(2, b"the last words\n")
    os._exit(status)


def leave_processes(daemons: bool = True) -> None:
    """Start a process, and some that leave the group and session, as daemons do."""
    subprocess.Popen(["sleep", "600"])
    if not daemons:
        return
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


def write_garbage(end: bool) -> None:
    """Write a record that is none, and perhaps end at once."""
    (own_folder() / "record.json").write_bytes(b"\xff{ no record")
    if end:
        os._exit(0)


def lose_streams() -> None:
    """Close standard output and standard error, in Python and in the system."""
    sys.stdout.close()
    sys.stderr.close()
    for number in (1, 2):
        os.close(number)


def lose_working_folder() -> None:
    """Go to a folder that is no more."""
    folder = own_folder() / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


def warn() -> None:
    """Say something on standard error, as a library may."""
    warnings.warn("planted warning", stacklevel=2)
    print("planted words on standard error", file=sys.stderr)


def raise_(error: BaseException) -> None:
    """Raise it, as an expression."""
    raise error


CUDA_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.72 GiB"
CUDNN = "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"
FAULTS: dict[str, Callable[[], Any]] = {
    "raise": lambda: raise_(RuntimeError("planted failure")),
    "exit": lambda: sys.exit(0),
    "exit-at-once": lambda: os._exit(0),
    "abort": os.abort,
    "segfault": segfault,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(60),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(60),
    "memory": want_memory,
    "cuda-memory": lambda: raise_(torch.OutOfMemoryError(CUDA_MEMORY)),
    "cudnn": lambda: raise_(RuntimeError(CUDNN)),
    "hold-lock": hold_the_lock,
    "backtrack": backtrack,
    "stop": stop,
    "flood": lambda: flood(9),
    "leave-processes": leave_processes,
    "remove-folder": lambda: shutil.rmtree(own_folder()),
    "garbage": lambda: write_garbage(end=False),
    "garbage-and-end": lambda: write_garbage(end=True),
    "leave-folder": lambda: os.chdir("/"),
    "lose-folder": lose_working_folder,
    "lose-streams": lose_streams,
    "warn": warn,
    "nothing": lambda: None,
}


class Faulty(Plain):
    """Does one of FAULTS, or gives a loss that is no number, in training step `step`, or in the evaluation.

    `benchmark_only`: only where cudnn.benchmark is on.
    """

    def __init__(self, how: str, step: int = 3, benchmark_only: bool = False):
        super().__init__()
        self.how, self.step, self.seen = how, step, 0
        self.idle = benchmark_only and not torch.backends.cudnn.benchmark

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain until the step comes."""
        outputs = super().forward(inputs)
        self.seen += self.training
        if self.how == "evaluation" and not self.training:
            raise RuntimeError("planted failure in the evaluation")
        if self.idle or not self.training or self.seen != self.step or self.how == "evaluation":
            return outputs
        if self.how == "loss-nan":
            return outputs * float("nan")
        if self.how == "loss-inf":
            return outputs.index_fill(1, torch.arange(9), float("-inf"))
        FAULTS[self.how]()
        return outputs


class Held(Plain):
    """Starts processes of its own in step 3, and stays there if a file says so.

    folder: a file named `passed-PID` or `held-PID` is left in it by each trial. A file `hold` in it holds the number of
    trials to let pass and the name of the fault in which the next ones stay; `wait` lasts until the file is removed.
    """

    def __init__(self, folder: str, daemons: bool = True):
        super().__init__()
        self.folder, self.daemons, self.seen = Path(folder), daemons, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """As Plain, held up in step 3."""
        self.seen += self.training
        if self.training and self.seen == 3:
            self.seen += 1
            self.hold()
        return super().forward(inputs)

    def hold(self) -> None:
        """Start processes, and stay if there is a file that says so."""
        leave_processes(self.daemons)
        held, how = self._asked()
        (self.folder / f"{'held' if held else 'passed'}-{os.getpid()}").touch()
        while held:
            if how != "wait":
                FAULTS[how]()
            time.sleep(0.05)
            held = (self.folder / "hold").exists()

    def _asked(self) -> tuple[bool, str]:
        try:
            number, how = (self.folder / "hold").read_text().split()
        except FileNotFoundError:
            return False, ""
        return not any(self._takes(place) for place in range(int(number))), how

    def _takes(self, place: int) -> bool:
        """Whether this trial is the one that passes in this place: several may ask at once."""
        try:
            (self.folder / f"place-{place}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True
