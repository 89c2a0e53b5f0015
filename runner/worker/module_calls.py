"""Follow the calls of a model's modules: what each took and gave, and what the code between them made.

A module whose call calls no other module is one entry. The code of one that does, a residual sum or a functional ReLU,
is an entry wherever it hands on a tensor of its own making, to a module that it calls or to its caller.
"""

import weakref
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from runner.worker.bits import has_bits
from runner.worker.call import as_text, tensors
from runner.worker.generator import default_generator, state_digest
from runner.worker.gradients import Gradients
from runner.worker.hooks import hooked, uncompiled
from runner.worker.recorder import Known, Recorder


@dataclass(eq=False)
class _Frame:
    """A call that goes on: what its code has had so far, and the state of the random generator at that moment."""

    path: str
    module: nn.Module
    scalars: str
    values: list[Known]
    random_state: str
    calls: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """What a tensor was like when its bits were looked at."""

    tensor: weakref.ref[Tensor]
    state: tuple[Any, ...]
    known: Known


@dataclass(eq=False)
class Calls:
    """The calls of one step.

    `states` holds the parameters and buffers of modules by path, `gradients` follows what the calls make. `order`
    numbers the modules by their first call, `taken` holds what each took.
    """

    recorder: Recorder
    device: torch.device
    states: dict[str, list[Known]]
    gradients: Gradients
    order: dict[str, int] = field(default_factory=dict)
    taken: dict[str, list[Known]] = field(default_factory=dict)
    _frames: list[_Frame] = field(default_factory=list)
    _looks: dict[int, _Look] = field(default_factory=dict)

    def following(self, model: nn.Module) -> AbstractContextManager[None]:
        """Follow the model's modules."""
        return hooked(model, self._enter, self._leave)

    def position(self, path: str) -> tuple[int, bool]:
        """When a module was first called, as a key; of one that never was: when that was which uses its weights."""
        called = path
        while called and called not in self.order:
            called = called.rpartition(".")[0]
        return self.order.get(called, -1), called != path

    def _enter(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        plain = not kwargs and len(args) == 1 and isinstance(args[0], Tensor)  # as most are, which is told sooner
        taken = [args[0]] if plain else tensors((args, kwargs))
        if self._frames:
            self._hand_on(self._frames[-1], taken)
        values = [self._known(tensor) for tensor in taken]
        self.order.setdefault(path, len(self.order))
        self.taken.setdefault(path, []).extend(values)
        scalars = "[[%], {}]" if plain else as_text((args, kwargs), lambda found: ", ".join("%" for _ in found))
        self._frames.append(_Frame(path, uncompiled(module), scalars, values, self._random_state()))

    def _leave(self, module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        """Record the call; also one that an error ended, which gives nothing."""
        frame = self._frames.pop()
        while frame.module is not uncompiled(module):
            frame = self._frames.pop()  # one that ended before its hooks were called
        made = tensors(output)
        if not frame.calls or not frame.path:
            self._record(frame, made)
        else:
            self._hand_on(frame, made)
        given = [self._known(tensor) for tensor in made]
        if not frame.path:
            self.gradients.give(given, made)
        if self._frames:
            caller = self._frames[-1]
            caller.calls += 1
            caller.values.extend(given)
            caller.random_state = frame.random_state

    def _hand_on(self, frame: _Frame, handed: list[Tensor]) -> None:
        """Record what the call's own code made of what it had, if any of these tensors is new."""
        made = [tensor for tensor in handed if self._remembered(tensor) is None]
        if made:
            self._record(frame, made)

    def _record(self, frame: _Frame, made: list[Tensor]) -> None:
        """An entry for a call's own code. What a module without calls gives is looked at anew, whatever it says."""
        index, state = self.recorder.next_index, self._random_state()
        drawn = state != frame.random_state
        made = list({id(tensor): tensor for tensor in made}.values())
        outputs = [self._known(tensor, index, anew=not frame.calls) for tensor in made]
        inputs = [*dict.fromkeys(frame.values), *self._weights(frame)]
        self.gradients.follow(frame.path, [*inputs, *outputs], made)
        self.recorder.add(
            part="forward" if torch._C._current_autograd_node() is None else "backward",
            name=type(frame.module).__name__,
            module=frame.path,
            inputs=inputs,
            outputs=outputs,
            scalars=frame.scalars,
            kind="random" if drawn else "computed",
            random=frame.random_state if drawn else None,
        )
        frame.values.extend(outputs)
        frame.random_state = state

    def _random_state(self) -> str:
        return state_digest(default_generator(self.device))

    def _weights(self, frame: _Frame) -> list[Known]:
        """The module's parameters and buffers, with those of modules below it that it may use without calling them."""
        below = [name for name, _ in frame.module.named_modules()] if not frame.calls else [""]
        paths = [".".join(filter(None, (frame.path, name))) for name in below]
        return [known for path in paths for known in self.states.get(path, ())]

    def _known(self, tensor: Tensor, source: int | None = None, anew: bool = False) -> Known:
        """The tensor as it is now, looked at again only if it may have changed."""
        known = None if anew else self._remembered(tensor)
        if known is None:
            known = self.recorder.look_at(tensor, source, finite=source is not None)
            if has_bits(tensor) and not tensor.is_inference():  # those count no changes
                self._looks[id(tensor)] = _Look(weakref.ref(tensor), _state(tensor), known)
        return known

    def _remembered(self, tensor: Tensor) -> Known | None:
        look = self._looks.get(id(tensor))
        same = look is not None and look.tensor() is tensor and look.state == _state(tensor)
        return look.known if look and same else None


def _state(tensor: Tensor) -> tuple[Any, ...]:
    """What changes with the tensor, as far as PyTorch knows of it."""
    return tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()
