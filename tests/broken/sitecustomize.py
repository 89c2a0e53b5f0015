"""On PYTHONPATH this makes a PyTorch with a fault: one operation gives other bits at each call, or in each process."""

import os
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Broken(TorchDispatchMode):
    """Changes the first tensor that these operations give, from here to the process's end.

    how: "repeated", by noise of the operating system; "process", by one factor for the whole process.
    """

    def __init__(self, names: str, how: str):
        super().__init__()
        self.names, self.how = names.split(","), how

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do the operation, and change what it gives if it is the one."""
        result = func(*args, **(kwargs or {}))
        if str(func) in self.names:
            tensors = result if isinstance(result, list | tuple) else [result]
            next(one for one in tensors if isinstance(one, Tensor)).mul_(1 + self._noise() / 2**12)
        return result

    def _noise(self) -> int:
        return os.urandom(1)[0] if self.how == "repeated" else os.getpid() % 251


if os.environ.get("BROKEN_OPERATION"):
    Broken(os.environ["BROKEN_OPERATION"], os.environ["BROKEN_HOW"]).__enter__()
