"""Follow the calls of a model's modules: what each took and gave, and what the code between them made.

A module whose call calls no other module is one entry. The code of one that does, a residual sum or a functional ReLU,
is an entry wherever it hands on a tensor of its own making, to a module that it calls or to its caller.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from runner.worker.call import tensors
from runner.worker.deferred import has_bits
from runner.worker.recorder import Known, Recorder, generator_state


@dataclass(eq=False)
class _Frame:
    """A call that goes on: what its code has had so far, and the state of the random generator at that moment."""

    path: str
    module: nn.Module
    scalars: str
    values: list[Known]
    generator: bytes
    calls: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Memory:
    """What a tensor was like when its bits were looked at."""

    tensor: weakref.ref[Tensor]
    state: tuple[Any, ...]
    known: Known


@dataclass(eq=False)
class Calls:
    """The calls of one step.

    `states` holds the parameters and buffers of modules by path. `order` numbers the modules by their first call,
    `taken` holds what each took, `given` what the model gave.
    """

    recorder: Recorder
    device: torch.device
    states: dict[str, list[Known]]
    order: dict[str, int] = field(default_factory=dict)
    taken: dict[str, list[Known]] = field(default_factory=dict)
    given: list[Known] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)
    _memories: dict[int, _Memory] = field(default_factory=dict)

    @contextmanager
    def following(self, model: nn.Module, whole: bool) -> Iterator[None]:
        """Follow the model's modules by hooks; only the model itself if it is to be seen as a `whole`."""
        handles = []
        for path, module in [("", model)] if whole else followed(model):
            handles.append(module.register_forward_pre_hook(self._entering(path), with_kwargs=True))
            handles.append(module.register_forward_hook(self._left, with_kwargs=True, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def position(self, path: str) -> tuple[int, bool]:
        """When a module was first called, as a key; of one that never was: when that was which uses its weights."""
        called = path
        while called and called not in self.order:
            called = called.rpartition(".")[0]
        return self.order.get(called, -1), called != path

    def _entering(self, path: str) -> Any:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            taken = tensors((args, kwargs))
            if self._frames:
                self._hand_on(self._frames[-1], taken)
            values = [self._known(tensor) for tensor in taken]
            self.order.setdefault(path, len(self.order))
            self.taken.setdefault(path, []).extend(values)
            inner = getattr(module, "_orig_mod", module)
            state = generator_state(self.device)
            self._frames.append(_Frame(path, inner, scalar_text((args, kwargs)), values, state))

        return enter

    def _left(self, module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        """Record the call; also one that an error ended, which gives nothing."""
        frame = self._frames.pop()
        while frame.module is not getattr(module, "_orig_mod", module):
            frame = self._frames.pop()  # one that ended before its hooks were called
        made = tensors(output)
        if not frame.calls or not frame.path:
            self._record(frame, made)
        else:
            self._hand_on(frame, made)
        given = [self._known(tensor) for tensor in made]
        if not frame.path:
            self.given = given
        if self._frames:
            caller = self._frames[-1]
            caller.calls += 1
            caller.values.extend(given)
            caller.generator = frame.generator

    def _hand_on(self, frame: _Frame, handed: list[Tensor]) -> None:
        """Record what the call's own code made of what it had, if any of these tensors is new."""
        made = [tensor for tensor in handed if self._remembered(tensor) is None]
        if made:
            self._record(frame, made)

    def _record(self, frame: _Frame, made: list[Tensor]) -> None:
        """An entry for a call's own code. What a module without calls gives is looked at anew, whatever it says."""
        index, state = self.recorder.next_index, generator_state(self.device)
        made = list({id(tensor): tensor for tensor in made}.values())
        outputs = [self._known(tensor, index, anew=not frame.calls) for tensor in made]
        self.recorder.add(
            part="forward" if torch._C._current_autograd_node() is None else "backward",
            name=type(frame.module).__name__,
            module=frame.path,
            inputs=[*dict.fromkeys(frame.values), *self._weights(frame)],
            outputs=outputs,
            scalars=frame.scalars,
            generator=frame.generator if state != frame.generator else None,
        )
        frame.values.extend(outputs)
        frame.generator = state

    def _weights(self, frame: _Frame) -> list[Known]:
        """The module's parameters and buffers, with those of modules below it that it may use without calling them."""
        below = [name for name, _ in frame.module.named_modules()] if not frame.calls else [""]
        paths = [".".join(filter(None, (frame.path, name))) for name in below]
        return [known for path in paths for known in self.states.get(path, ())]

    def _known(self, tensor: Tensor, source: int | None = None, anew: bool = False) -> Known:
        """The tensor as it is now, looked at again only if it may have changed."""
        known = None if anew else self._remembered(tensor)
        if known is None:
            known = self.recorder.look_at(tensor, source)
            if has_bits(tensor) and not tensor.is_inference():  # those count no changes
                self._memories[id(tensor)] = _Memory(weakref.ref(tensor), _state(tensor), known)
        return known

    def _remembered(self, tensor: Tensor) -> Known | None:
        memory = self._memories.get(id(tensor))
        same = memory is not None and memory.tensor() is tensor and memory.state == _state(tensor)
        return memory.known if memory and same else None


def _state(tensor: Tensor) -> tuple[Any, ...]:
    """What changes with the tensor, as far as PyTorch knows of it."""
    return tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()


def followed(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules to follow, by path: TorchScript knows no hooks, and an encoder layer goes another way with them."""
    closed: tuple[str, ...] = ()
    for path, module in model.named_modules():
        if path.startswith(closed):
            continue
        fast = isinstance(module, nn.TransformerEncoderLayer) and not module.training
        if fast or isinstance(module, torch.jit.ScriptModule):
            closed += (f"{path}." if path else "",)
        else:
            yield path, module


def scalar_text(value: Any) -> str:
    """Arguments as text, without addresses: numbers and words as they are, tensors and other objects by their type."""
    if isinstance(value, Tensor):
        return "%"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(scalar_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {scalar_text(one)}' for key, one in value.items())}}}"
    plain = value is None or isinstance(value, bool | int | float | complex | str | torch.dtype | torch.device)
    return repr(value) if plain else type(value).__name__
