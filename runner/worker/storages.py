"""What wrote a tensor's memory last, and to which module it belongs: kept by storage, so that views need nothing."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from runner.worker.bits import has_bits

Content = Literal["bits", "uninitialised", "scratch"]


@dataclass(slots=True)
class Memory:
    """A storage: the index of the operation that wrote it last, what that left there, and the module it belongs to.

    The weak reference frees the data as usual and keeps the storage's address from being given to another one.
    """

    alive: StorageWeakRef
    source: int | None = None
    content: Content = "bits"
    module: str | None = None


class Storages:
    """All storages that an operation of the trace has written, or that belong to a module."""

    def __init__(self) -> None:
        self._known: dict[int, Memory] = {}

    def find(self, tensor: Tensor) -> Memory | None:
        """What is known of a tensor's memory; None for memory that came from elsewhere."""
        return self._known.get(tensor.untyped_storage()._cdata) if has_bits(tensor) else None

    def wrote(self, tensor: Tensor, index: int, content: Content = "bits") -> None:
        """Take down that an operation wrote this tensor."""
        if memory := self._memory(tensor):
            memory.source, memory.content = index, content

    def belongs(self, tensor: Tensor, module: str) -> None:
        """Take down to which module a parameter belongs, or a tensor that the optimizer keeps for it."""
        if memory := self._memory(tensor):
            memory.module = module

    def modules(self, tensors: list[Tensor]) -> set[str]:
        """The modules to which these tensors belong, as far as known."""
        found = (self.find(tensor) for tensor in tensors)
        return {memory.module for memory in found if memory and memory.module is not None}

    def forget_freed(self) -> None:
        """Drop what has been freed meanwhile."""
        self._known = {key: memory for key, memory in self._known.items() if not memory.alive.expired()}

    def _memory(self, tensor: Tensor) -> Memory | None:
        if not has_bits(tensor):
            return None
        storage = tensor.untyped_storage()
        if storage._cdata not in self._known:
            self._known[storage._cdata] = Memory(StorageWeakRef(storage))
        return self._known[storage._cdata]
