"""Operations that make the host wait for the device, such as .item(), nonzero() and .cpu(): PyTorch's debug mode tells.

That mode does not know all of them; those of other libraries it cannot know.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

# PyTorch's words, in c10/cuda/CUDAFunctions.cpp and in torch/csrc/cuda/Module.cpp of torch 2.11 to 2.14.
CALLED, NOT_ALL = "called a synchronizing CUDA operation", "Synchronization debug mode is a prototype feature"


@dataclass
class Synchronizing:
    """How many such operations there were while it was counting; None before it did."""

    count: int | None = None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens within, in whatever thread. All other warnings pass as they would."""
        self.count, mode = 0, torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            show_otherwise = warnings.showwarning

            def show(message: Any, *where: Any, **more: Any) -> None:
                if str(message).startswith(CALLED):
                    self.count = (self.count or 0) + 1
                elif not str(message).startswith(NOT_ALL):
                    show_otherwise(message, *where, **more)

            warnings.showwarning = show
            for words in (CALLED, NOT_ALL):  # each time, also where warnings are ignored or made errors
                warnings.filterwarnings("always", message=words)
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode(mode)
