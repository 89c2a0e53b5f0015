"""A mode that sees every ATen operation and takes digests of what went in and what came out.

Operations are seen where PyTorch dispatches them to a device, below autograd and autocast, so backward pass and
optimizer are seen like the forward pass. While one is looked at, the looking itself is seen by nobody: that matters
where another mode stands around this one and changes what operations do.
"""

from typing import Any

import torch
from torch import nn
from torch._C import _DisableTorchDispatch
from torch.utils._python_dispatch import TorchDispatchMode

from runner.operation import Part, Repeated
from runner.worker.attribution import Attribution
from runner.worker.bits import has_bits
from runner.worker.call import Call, copied
from runner.worker.capture import Capture
from runner.worker.generator import generator_for, state_digest
from runner.worker.recorder import Known, Recorder
from runner.worker.repeat import compared
from runner.worker.signature import signature
from runner.worker.storages import Content, Storages


class Tracer(TorchDispatchMode):
    """While it is entered it sees every operation, and adds it to the entries of its `recorder`."""

    supports_higher_order_operators = True

    def __init__(self, model: nn.Module, repeat: bool, capture: Capture):
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder, self.attribution, self.storages = Recorder(), Attribution(model), Storages()
        self.optimizing = False
        self._repeat, self._capture = repeat, capture

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(one is not torch.Tensor for one in types):
            return NotImplemented  # a subclass's own dispatch divides it into operations, which come here again
        kwargs, form = kwargs or {}, signature(func)
        if form.name.startswith("profiler.") or (types and func is torch.ops.aten.detach.default):
            return func(*args, **kwargs)  # marks that the optimizer sets; copies of handles that autograd saves
        if form.composite:  # inference, where no autograd has divided it before
            with self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        call = Call.of(form, args, kwargs)
        part, module, line = self._where(call)
        random = state_digest(generator_for(args, kwargs)) if form.kind == "random" else None
        with _DisableTorchDispatch():
            inputs = self._inputs(call)
        unread = {id(tensor) for tensor, known in zip(call.tensors, inputs, strict=True) if known.digest is None}
        result, repeated = self._done(call, random, unread, func, args, kwargs)
        with _DisableTorchDispatch():
            outputs = self._outputs(call, result, module)
        said = call.scalars, form.kind, line, tuple(call.writes), random, repeated
        self.recorder.add(part, form.name, module, inputs, outputs, *said)
        return result

    def _where(self, call: Call) -> tuple[Part, str, str | None]:
        module, line = self.attribution.here()
        if self.optimizing:
            owners = self.storages.modules(call.tensors)
            return "optimizer", module or (owners.pop() if len(owners) == 1 else ""), line
        return "forward" if torch._C._current_autograd_node() is None else "backward", module, line

    def _inputs(self, call: Call) -> list[Known]:
        found, means_nothing = [], call.form.kind in ("view", "uninitialised")
        for place, tensor in enumerate(call.tensors):
            memory = self.storages.find(tensor)
            content, source = (memory.content, memory.source) if memory else ("bits", None)
            unread = content == "scratch" or (content == "uninitialised" and place in call.writes)
            skip = means_nothing or unread or place in call.overwrites
            look = self.recorder.pass_over if skip else self.recorder.look_at
            found.append(look(tensor, source))
        return found

    def _outputs(self, call: Call, returned: Any, module: str) -> list[Known]:
        found, index, kind, scratch = [], self.recorder.next_index, call.form.kind, call.scratch(returned)
        for tensor in call.outputs(returned):
            content: Content = "scratch" if id(tensor) in scratch else "bits"
            if kind == "uninitialised":
                content = "uninitialised"
            if kind != "view":
                self.storages.wrote(tensor, index, content)
            if self.optimizing and module:
                self.storages.belongs(tensor, module)
            means_something = kind != "view" and content == "bits"
            recorder = self.recorder
            found.append(recorder.look_at(tensor, finite=True) if means_something else recorder.pass_over(tensor))
        return found

    def _done(
        self, call: Call, random: str | None, unread: set[int], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Repeated | None]:
        """Do the operation, and where it can be repeated do it again on copies, which the first call never sees.

        The copies are made before, since some operations change their inputs without saying so. `unread` are the ids
        of the inputs whose bits mean nothing.
        """
        wanted = self.recorder.next_index in self._capture.indices
        repeatable = self._repeat and call.form.repeatable and all(map(has_bits, call.tensors))
        again = copied((args, kwargs)) if repeatable else None
        if wanted:
            self._capture.before(self.recorder.next_index, func, args, kwargs, unread)
        returned = func(*args, **kwargs)
        if wanted:
            self._capture.keep(self.recorder.next_index, func, args, kwargs, returned)
        if again is None or (random and random != state_digest(generator_for(args, kwargs))):
            return returned, None
        return returned, _repeated(call, returned, Call.of(call.form, *again), func(*again[0], **again[1]))


def _repeated(call: Call, returned: Any, again: Call, returned_again: Any) -> Repeated | None:
    """The results of two calls side by side; None where there is nothing to compare."""
    pairs = zip(call.results(returned), again.results(returned_again), strict=True)
    readable = [pair for pair in pairs if has_bits(pair[0])]
    if not readable:
        return None
    size = compared(*zip(*readable, strict=True))
    return Repeated(not size.differing, size.max_ulp, size.max_relative)
