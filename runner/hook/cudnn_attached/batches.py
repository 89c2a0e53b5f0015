"""What goes into the steps, where it can be seen: the outermost modules' inputs and what a DataLoader yields."""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.data import dataloader

SMALL_BYTES = 1 << 16  # as targets are: a large batch is hashed as the model gets it, on its device
DEPTH = 4


class Batches:
    """The tensors of the step at work, the outermost modules so far, and whether these can be seen.

    `touched` is called when a step's work is seen to begin, `fetched` with the seconds that a batch was waited for,
    `compiles` before the first torch.compile.
    """

    def __init__(
        self,
        mine: Callable[[], bool],
        touched: Callable[[], None],
        fetched: Callable[[float], None],
        compiles: Callable[[], None],
    ):
        self.mine, self.touched, self.fetched, self.compiles = mine, touched, fetched, compiles
        self.inputs: list[Tensor] = []
        self.yielded: list[Tensor] = []
        self.modules: list[nn.Module] = []
        self.compiled = False
        self._handle: Any = None

    def watch(self) -> None:
        """From now on."""
        self._outermost()
        _before(torch, "compile", self._stop)
        _before(nn.Module, "compile", self._stop)
        fetch = dataloader._BaseDataLoaderIter.__next__
        kind: Any = dataloader._BaseDataLoaderIter

        def fetch_watched(loader: Any) -> Any:
            start = time.perf_counter()
            batch = fetch(loader)
            if self.mine():
                self.yielded += tensors_in(batch)
                self.fetched(time.perf_counter() - start)
            return batch

        kind.__next__ = fetch_watched

    def _outermost(self) -> None:
        """Have the next call of a module seen; those within it run as if nobody looked."""
        self._handle = None if self.compiled else register_module_forward_pre_hook(self._enter)

    def _stop(self) -> None:
        """torch.compile would take a hook for a part of the model."""
        if not self.compiled:
            self.compiles()
        self.compiled = True
        if self._handle:
            self._handle.remove()

    def _enter(self, module: nn.Module, _: Any) -> None:
        if not (self.mine() and torch.is_grad_enabled()) or isinstance(module, torch.jit.ScriptModule):
            return
        self._handle.remove()
        self.touched()
        if all(module is not one for one in self.modules):
            self.modules.append(module)
        handle: Any = None

        def leave(_: nn.Module, args: Any, kwargs: Any, __: Any) -> None:
            handle.remove()
            self._leave(args, kwargs)

        handle = module.register_forward_hook(leave, with_kwargs=True, always_call=True)

    def _leave(self, args: Any, kwargs: Any) -> None:
        """What autograd has made is no data: a loss that is a module gets the model's outputs as well."""
        self.inputs += [one for one in tensors_in((args, kwargs)) if not one.requires_grad]
        self._outermost()

    def take(self) -> list[Tensor]:
        """What the step got, and begin anew: inputs, and small tensors that a loader gave; all of it without inputs."""
        yielded = [one for one in self.yielded if not self.inputs or one.nbytes <= SMALL_BYTES]
        taken = list({id(one): one for one in (*self.inputs, *yielded)}.values())
        self.inputs, self.yielded = [], []
        return taken


def _before(owner: Any, name: str, stop: Callable[[], None]) -> None:
    function = getattr(owner, name)

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        stop()
        return function(*args, **kwargs)

    setattr(owner, name, watched)


def tensors_in(value: Any, depth: int = DEPTH) -> Iterator[Tensor]:
    """The tensors in nested lists, tuples and mappings that lie in memory as plain numbers."""
    if isinstance(value, Tensor):
        plain = value.layout is torch.strided and not value.is_meta and not value.is_quantized and not value.is_nested
        if plain and not is_functorch_wrapped_tensor(value):
            yield value
    elif depth:
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
        for one in inner:
            yield from tensors_in(one, depth - 1)
