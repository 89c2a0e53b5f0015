"""Entries of a trace whose digests are still on their device, read all at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch._C import _DisableTorchDispatch

from runner.operation import Kind, Operation, Part, Repeated, Value
from runner.worker.bits import dtype_name
from runner.worker.deferred import Deferred


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


class Recorder:
    """The entries of a trace, of all steps up to `step`."""

    def __init__(self) -> None:
        self.step = 0
        self._deferred = Deferred()
        self._digests: list[str] = []
        self._finite: list[str | None] = []
        self._entries: list[tuple[Any, list[Known], list[Known]]] = []
        self._read = 0

    @contextmanager
    def recording(self, step: int) -> Iterator[None]:
        """Around a step: its digests are read at its end. What a failing one has done is kept as far as possible."""
        self.step = step
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):  # the device may be what has failed
                self._wait()
            raise
        self._wait()

    @property
    def next_index(self) -> int:
        """The index of the entry that is added next."""
        return len(self._entries)

    def look_at(self, tensor: Tensor, source: int | None = None, finite: bool = False) -> Known:
        """Ask for a tensor's bits, and if wanted whether it is finite, without waiting for them."""
        return self._known(tensor, source, *self._deferred.look(tensor, finite))

    def look_at_each(self, tensors: Sequence[Tensor], sources: Sequence[int | None], finite: bool) -> list[Known]:
        """The same of many tensors of one device at once."""
        places = self._deferred.look_at_each(tensors, finite)
        return [
            self._known(tensor, source, *both) for tensor, source, both in zip(tensors, sources, places, strict=True)
        ]

    def pass_over(self, tensor: Tensor, source: int | None = None) -> Known:
        """A tensor whose bits mean nothing."""
        return self._known(tensor, source, None, None)

    def add(
        self,
        part: Part,
        name: str,
        module: str,
        inputs: list[Known],
        outputs: list[Known],
        scalars: str = "",
        kind: Kind = "computed",
        line: str | None = None,
        writes: tuple[int, ...] = (),
        random: str | None = None,
        repeated: Repeated | None = None,
    ) -> None:
        """Add an entry, by the fields of an Operation."""
        said = self.next_index, self.step, part, kind, name, module, line, scalars
        made = partial(Operation, *said, writes=writes, random=random, repeated=repeated)
        self._entries.append((made, inputs, outputs))

    def operations(self) -> Iterator[Operation]:
        """The entries whose digests were read."""
        for made, *values in self._entries[: self._read]:
            inputs, outputs = (tuple(one.value(self._digests, self._finite) for one in some) for some in values)
            yield made(inputs=inputs, outputs=outputs)

    def _wait(self) -> None:
        with _DisableTorchDispatch():
            digests, finite = self._deferred.read()
        self._digests += digests
        self._finite += finite
        self._read = len(self._entries)

    def _known(self, tensor: Tensor, source: int | None, digest: int | None, finite: int | None) -> Known:
        return Known(
            shape=() if tensor.is_nested else tuple(tensor.shape),  # nested tensors have none
            dtype=dtype_name(tensor.dtype),
            digest=None if digest is None else digest + len(self._digests),
            source=source,
            finite=None if finite is None else finite + len(self._finite),
        )
