"""Entries of a trace whose digests are still on their device, read all at once."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from runner.operation import Kind, Operation, Part, Value
from runner.worker.deferred import Deferred, has_bits
from runner.worker.digest import lanes_of_each


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A tensor at one moment: the places of its digest, and of whether it is finite, among all that will be read."""

    shape: tuple[int, ...]
    dtype: str
    digest: int | None
    source: int | None
    finite: int | None

    def value(self, digests: list[str], finite: list[str | None]) -> Value:
        """The value, now that the digests were read."""
        digest = None if self.digest is None else digests[self.digest]
        return Value(digest, self.shape, self.dtype, self.source, None if self.finite is None else finite[self.finite])


class _Asked(Deferred):
    def digest_each(self, tensors: Sequence[Tensor]) -> list[int | None]:
        """Ask for the digests of many tensors of one device."""
        readable = [tensor for tensor in tensors if has_bits(tensor)]
        places = iter(range(len(self._lanes), len(self._lanes) + len(readable)))
        self._lanes += lanes_of_each(readable)
        return [next(places) if has_bits(tensor) else None for tensor in tensors]


class Recorder:
    """The entries of a trace, of all steps up to `step`."""

    def __init__(self) -> None:
        self.step = 0
        self._asked = _Asked()
        self._digests: list[str] = []
        self._finite: list[str | None] = []
        self._entries: list[tuple[Any, list[Known], list[Known]]] = []
        self._read = 0

    @property
    def next_index(self) -> int:
        """The index of the entry that is added next."""
        return len(self._entries)

    def look_at(self, tensor: Tensor, source: int | None) -> Known:
        """Ask for a tensor's bits, and whether it is finite if an entry made it, without waiting for them."""
        return self._known(tensor, self._asked.digest(tensor), source)

    def look_at_each(self, tensors: Sequence[Tensor], sources: Sequence[int | None]) -> list[Known]:
        """The same of many tensors of one device at once."""
        return list(map(self._known, tensors, self._asked.digest_each(tensors), sources))

    def add(
        self,
        part: Part,
        name: str,
        module: str,
        inputs: list[Known],
        outputs: list[Known],
        scalars: str = "",
        generator: bytes | None = None,
    ) -> None:
        """Add an entry; `generator` is the state of the random generator before, if it drew from it."""
        random = None if generator is None else hashlib.sha256(generator).hexdigest()[:32]
        kind: Kind = "computed" if random is None else "random"
        said = self.next_index, self.step, part, kind, name, module, None, scalars
        self._entries.append((partial(Operation, *said, random=random), inputs, outputs))

    def read(self) -> None:
        """Wait for the digests of the entries that were added."""
        digests, finite = self._asked.read()
        self._digests += digests
        self._finite += finite
        self._read = len(self._entries)

    def operations(self) -> Iterator[Operation]:
        """The entries whose digests were read."""
        for made, *values in self._entries[: self._read]:
            inputs, outputs = (tuple(one.value(self._digests, self._finite) for one in some) for some in values)
            yield made(inputs=inputs, outputs=outputs)

    def _known(self, tensor: Tensor, digest: int | None, source: int | None) -> Known:
        finite = None if source is None else self._asked.finite(tensor)
        return Known(
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            digest=None if digest is None else digest + len(self._digests),
            source=source,
            finite=None if finite is None else finite + len(self._finite),
        )


def generator_state(device: torch.device) -> bytes:
    """The state of a device's random generator. A CUDA generator's lies on the host: nothing waits."""
    generator = torch.default_generator
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = torch.cuda.default_generators[index]
    return generator.get_state().numpy().tobytes()
