"""A mode that sees every ATen operation and takes digests of what went in and what came out.

Operations are seen where PyTorch dispatches them to a device, below autograd and autocast, so backward pass and
optimizer are seen like the forward pass. While one is looked at, the looking itself is seen by nobody: that matters
where another mode stands around this one and changes what operations do.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch._C import _DisableTorchDispatch
from torch.utils._python_dispatch import TorchDispatchMode

from runner.operation import Operation, Part, Repeated, Value
from runner.worker.attribution import Attribution
from runner.worker.call import copied, tensors
from runner.worker.deferred import Deferred, has_bits
from runner.worker.repeat import compared
from runner.worker.signature import Call, Signature, signature
from runner.worker.storages import Content, Storages


class Keeper(Protocol):
    """Keeps inputs and outputs of the operations with these indices: runner.worker.capture.Capture does."""

    indices: frozenset[int]

    def before(self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take the inputs."""

    def keep(self, index: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        """Take the outputs."""

    def write(self, folder: Path) -> None:
        """Leave what was kept."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A value whose digest is still on its device: `digest` and `finite` are the places of the answers."""

    shape: tuple[int, ...]
    dtype: str
    digest: int | None
    source: int | None = None
    finite: int | None = None

    def value(self, digests: list[str], finite: list[str | None]) -> Value:
        """The value, with the answers at hand."""
        digest = None if self.digest is None else digests[self.digest]
        not_finite = None if self.finite is None else finite[self.finite]
        return Value(digest, self.shape, self.dtype, self.source, not_finite)


class Tracer(TorchDispatchMode):
    """While it is entered it sees every operation; `read` makes `operations` of what was seen."""

    supports_higher_order_operators = True

    def __init__(self, model: nn.Module, repeat: bool, keeper: Keeper | None):
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.attribution, self.storages = Attribution(model), Storages()
        self.number, self.optimizing = 0, False
        self._repeat, self._keeper = repeat, keeper
        self._deferred = Deferred()
        self._unread: list[tuple[Callable[..., Operation], list[_Asked], list[_Asked]]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, form = kwargs or {}, signature(func)
        if form.name.startswith("profiler.") or (types and func is torch.ops.aten.detach.default):
            return func(*args, **kwargs)  # marks that the optimizer sets; copies of handles that autograd saves
        if form.composite:  # inference, where no autograd has divided it before
            with self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        call, index = Call.of(form, args, kwargs), len(self.operations) + len(self._unread)
        part, module, line = self._where(call)
        with _DisableTorchDispatch():
            random = _generator_state(call, kwargs) if form.kind == "random" else None
            inputs = self._inputs(form, call)
        result, repeated = self._done(form, call, index, random, func, args, kwargs)
        with _DisableTorchDispatch():
            outputs = self._outputs(form, call, index, result, module)
        said = self.number, part, form.kind, form.name, module, line, call.scalars
        made = partial(Operation, index, *said, writes=tuple(call.writes), random=random, repeated=repeated)
        self._unread.append((made, inputs, outputs))
        return result

    def _where(self, call: Call) -> tuple[Part, str, str | None]:
        module, line = self.attribution.here()
        if self.optimizing:
            owners = self.storages.modules(call.tensors)
            return "optimizer", module or (owners.pop() if len(owners) == 1 else ""), line
        return "forward" if torch._C._current_autograd_node() is None else "backward", module, line

    def _inputs(self, form: Signature, call: Call) -> list[_Asked]:
        asked, means_nothing = [], form.kind in ("view", "uninitialised")
        for place, tensor in enumerate(call.tensors):
            memory = self.storages.find(tensor)
            content = memory.content if memory else "bits"
            unread = content == "scratch" or (content == "uninitialised" and place in call.writes)
            skip = means_nothing or unread or place in call.overwrites
            digest = None if skip else self._deferred.digest(tensor)
            asked.append(_Asked(_shape(tensor), _name(tensor.dtype), digest, memory.source if memory else None))
        return asked

    def _outputs(self, form: Signature, call: Call, index: int, result: Any, module: str) -> list[_Asked]:
        asked, scratch = [], _scratch(form, result)
        for tensor in _results(call, result):
            content: Content = "scratch" if id(tensor) in scratch else "bits"
            if form.kind == "uninitialised":
                content = "uninitialised"
            if form.kind != "view":
                self.storages.wrote(tensor, index, content)
            if self.optimizing and module:
                self.storages.belongs(tensor, module)
            looked_at = form.kind != "view" and content == "bits"
            digest = self._deferred.digest(tensor) if looked_at else None
            finite = self._deferred.finite(tensor) if looked_at else None
            asked.append(_Asked(_shape(tensor), _name(tensor.dtype), digest, finite=finite))
        return asked

    def _done(
        self, form: Signature, call: Call, index: int, random: str | None, func: Any, args: Any, kwargs: Any
    ) -> tuple[Any, Repeated | None]:
        """Do the operation, and where it can be repeated do it again on copies, which the first call never sees.

        The copies are made before, since some operations change their inputs without saying so.
        """
        keeper = self._keeper if self._keeper and index in self._keeper.indices else None
        again = None
        if self._repeat and form.repeatable and all(map(has_bits, call.tensors)):
            with _DisableTorchDispatch():
                again = copied((args, kwargs))
        if keeper:
            keeper.before(index, func, args, kwargs)
        result = func(*args, **kwargs)
        if keeper:
            keeper.keep(index, func, args, kwargs, result)
        if again is None or (random and random != _generator_state(call, kwargs)):
            return result, None
        results = func(*again[0], **again[1])
        with _DisableTorchDispatch():
            return result, _compared(form, result, results)

    def read(self) -> None:
        """Wait for the digests of what was seen."""
        with _DisableTorchDispatch():
            digests, finite = self._deferred.read()
        for made, *values in self._unread:
            inputs, outputs = (tuple(one.value(digests, finite) for one in some) for some in values)
            self.operations.append(made(inputs=inputs, outputs=outputs))
        self._unread.clear()
        self.storages.forget_freed()


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return () if tensor.is_nested else tuple(tensor.shape)  # nested tensors have none


@cache
def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _results(call: Call, result: Any) -> list[Tensor]:
    """What the operation returned, then what it wrote without returning it."""
    returned = tensors(result)
    there = {id(tensor) for tensor in returned}
    return returned + [call.tensors[place] for place in call.writes if id(call.tensors[place]) not in there]


def _scratch(form: Signature, result: Any) -> set[int]:
    """The ids of those outputs whose bits mean nothing."""
    return {id(result[place]) for place in form.scratch if place < len(result)}


def _compared(form: Signature, result: Any, again: Any) -> Repeated | None:
    """The outputs of two calls side by side; None where there is nothing to compare."""
    scratch = _scratch(form, result)
    pairs = zip(tensors(result), tensors(again), strict=True)
    meant = [(one, other) for one, other in pairs if id(one) not in scratch and has_bits(one)]
    return compared(*zip(*meant, strict=True)) if meant else None


def _generator_state(call: Call, kwargs: Mapping[str, Any]) -> str | None:
    """The digest of the state from which the operation draws. A CUDA generator's lies on the host: nothing waits."""
    device = next((tensor.device for tensor in call.tensors if tensor.is_cuda), None) or kwargs.get("device")
    generator = call.generator or torch.default_generator
    if call.generator is None and device is not None and torch.device(device).type == "cuda":
        index = torch.device(device).index
        generator = torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]
    return hashlib.sha256(generator.get_state().numpy().tobytes()).hexdigest()[:32]
