"""Captures of operations that are done here, in the test's own process."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from runner.captured import Captured
from runner.worker.capture import LIMIT_BYTES, Capture


class Keeping(TorchDispatchMode):
    """Calls the capture around those operations whose indices it wants, as the probe does."""

    def __init__(self, capture: Capture):
        super().__init__()
        self.capture, self.index = capture, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do the operation with the capture around it."""
        kwargs, index = kwargs or {}, self.index
        self.index += 1
        if index in self.capture.indices:
            self.capture.before(index, func, args, kwargs)
        result = func(*args, **kwargs)
        if index in self.capture.indices:
            self.capture.keep(index, func, args, kwargs, result)
        return result


def captured(
    folder: Path, work: Callable[[], Any], indices: Iterable[int] = (0,), limit_bytes: int = LIMIT_BYTES
) -> Captured:
    """What a capture leaves of these operations of some work."""
    capture = Capture(indices, limit_bytes)
    with Keeping(capture):
        work()
    folder.mkdir(exist_ok=True)
    capture.write(folder)
    return Captured.read(folder)
