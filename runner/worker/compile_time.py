"""What torch.compile costs: the time it takes, and a cache of the trial's own so that every trial pays it in full."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class CompileTime:
    """Adds up the host's time in torch.compile while it is entered; it can be entered again and again.

    Traced, compiled and tuned code is in it, and so is the recording of CUDA graphs; what Triton tunes at a kernel's
    first launch is not. Compilations inside one another count once.
    """

    handler: Any
    now: Callable[[], float] = time.perf_counter
    seconds: float = 0.0
    _start: float = field(default=0.0)

    def __enter__(self) -> None:
        self.handler.register_start_callback(self._begin)
        self.handler.register_end_callback(self._end)

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):  # a model that resets torch.compile takes them away itself
            self.handler.remove_start_callback(self._begin)
            self.handler.remove_end_callback(self._end)

    def _begin(self, _: Any) -> None:
        self._start = self.now()

    def _end(self, _: Any) -> None:
        self.seconds += self.now() - self._start


def compile_time(mode: str) -> CompileTime | None:
    """The stopwatch for train.compile; None for "off", and where this torch has no hooks for it."""
    if mode == "off":
        return None
    try:
        from torch._dynamo.callback import callback_handler  # not public: torch 2.11 and 2.14 have it
    except ImportError:
        print("the time torch.compile takes is not recorded: this torch has no hooks for it")
        return None
    return CompileTime(callback_handler)


@contextmanager
def own_cache(mode: str) -> Iterator[None]:
    """Let torch.compile begin with an empty cache on disk: else the first trial would pay for the later ones.

    And tuned choices would pass from trial to trial, which then could not differ in them. Set it before anything is
    compiled in this process.
    """
    if mode == "off":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="torch-compile-", ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        yield
