"""probe=kernels: which device kernels the operations of one step ran, from PyTorch's profiler.

The profiler tells of host-side events, each with the kernels that it started: operations, nodes of the backward pass
and marked ranges, nested in time. A range is marked around every module's call, and around the optimizer. A node of the
backward pass carries the number that autograd gave to it when its forward operation was done: so it finds its module.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

from runner.kernel_use import KernelCall, KernelUse
from runner.layout import kernels_file
from runner.operation import Part
from runner.trial import Trial
from runner.worker.hooks import hooked

MODULE, OPTIMIZER = "module of the model: ", "optimizer of the training"
_BACKWARD, _USER = 1, 7  # at::RecordScope
# On a CPU operations are told by what they consist of: allocations and views are no part of that, and neither is it
# that memory is filled or copied, unless that is all there is.
_NO_WORK = re.compile(
    r"(aten::)?(empty|new_empty|resize|as_strided|view|_?reshape|_unsafe_view|expand|transpose|t|permute|detach|alias|to|"
    r"lift_fresh|select|slice|narrow|squeeze|unsqueeze|split|chunk|unbind|resolve_conj|resolve_neg|flatten|item|"
    r"_local_scalar_dense|result_type|is_\w+|set|contiguous)(_alias|_like|_strided|_strided_out|_as)?_?"
)
_MINOR = re.compile(r"aten::(copy|fill|zero|zeros|zeros_like|clone|ones_like|_to_copy)_?")
_CONVOLUTION = re.compile(r"aten::.*conv(olution|_transpose|_depthwise|_dilated|\dd)")
_BY_CUDNN = re.compile(r"cudnn|miopen|fprop|dgrad|wgrad|implicit_gemm|convolve|winograd|fft2d")


@dataclass(frozen=True)
class Event:
    """A host-side event of the profiler.

    `parent` is the place in the list of the event around it, `kernels` are those it started itself. `sequence` is
    autograd's number: of a backward node, as `forward_thread` counted them, or of the node that `thread` makes next.
    """

    name: str
    parent: int | None = None
    thread: int = 1
    forward_thread: int = 0
    sequence: int = -1
    scope: int = 0
    shapes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()

    @property
    def is_operation(self) -> bool:
        """Whether it does work: no range, no host-side call of a driver, and not what the profiler itself costs."""
        if self.scope == _USER or self.name.startswith("autograd::engine::"):
            return False
        return "::" in self.name or self.name.startswith("triton_") or self.sequence >= 0 or self.scope == _BACKWARD


class KernelProbe:
    """The kernels of one step of a trial, `step` or else probe.steps: by then the others have warmed up and tuned."""

    def __init__(self, trial: Trial, model: nn.Module, device: torch.device, step: int | None = None):
        self._trial, self._model, self._device = trial, model, device
        self._step = step or trial.config["probe"]["steps"]
        self._use: KernelUse | None = None
        self._profiling = False

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Profile this step, if it is the one. One that fails leaves nothing."""
        if number != self._step:
            yield
            return
        on_gpu = self._device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(self._device)
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        with profile(activities=activities, record_shapes=True) as profiled, _ranges(self._model):
            self._profiling = True
            try:
                yield
            finally:
                self._profiling = False
        calls = kernel_calls(events_of(profiled.events() or ()), on_gpu)
        device = torch.cuda.get_device_name(self._device) if on_gpu else self._device.type
        trial = self._trial
        self._use = KernelUse(trial.cell, trial.number, number, device, tuple(calls), cudnn_convolution(calls))

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Mark the optimizer's part."""
        if not self._profiling:
            yield
            return
        with record_function(OPTIMIZER):
            yield

    def write(self, folder: Path) -> None:
        """Write what was seen, if the step was done."""
        if self._use:
            self._use.write(kernels_file(folder))


def _ranges(model: nn.Module) -> AbstractContextManager[None]:
    """Mark every call of a module; a compiled model is marked as a whole."""
    opened: list[Any] = []

    def enter(path: str, *_: Any) -> None:
        opened.append(record_function(f"{MODULE}{path}").__enter__())

    def leave(*_: Any) -> None:
        opened.pop().__exit__(None, None, None)

    return hooked(model, enter, leave)


def events_of(found: Iterable[Any]) -> list[Event]:
    """The host-side events in order of their start, from the profiler's FunctionEvents."""
    host = [one for one in found if one.device_type.name == "CPU" and not one.is_async]
    place = {id(one): index for index, one in enumerate(host)}
    marked = {one.name for one in host if one.scope == _USER}  # a GPU shows ranges too, as if they were kernels
    return [
        Event(
            name=one.name,
            parent=place.get(id(one.cpu_parent)),
            thread=one.thread,
            forward_thread=one.fwd_thread or 0,
            sequence=one.sequence_nr,
            scope=one.scope,
            shapes=tuple("x".join(map(str, shape)) for shape in one.input_shapes or () if _is_shape(shape)),
            kernels=tuple(sorted(kernel.name for kernel in one.kernels if kernel.name not in marked)),
        )
        for one in host
    ]


def _is_shape(shape: Any) -> bool:
    """Whether it is the shape of a tensor with dimensions; scalars of any kind have an empty one."""
    return bool(shape) and all(isinstance(size, int) for size in shape)


def kernel_calls(events: Sequence[Event], on_gpu: bool) -> list[KernelCall]:
    """The operations that started kernels, or without a GPU those that do not consist of others, with their modules."""
    modules = _forward_modules(events)
    worked = range(len(events)) if on_gpu else _innermost(events)
    calls = []
    for place in worked:
        event = events[place]
        by_hand = event.scope == _USER and event.kernels
        if (event.is_operation and (event.kernels or not on_gpu)) or by_hand:
            part, module = _where(events, place, modules)
            name = "kernels of no operation" if by_hand else event.name
            calls.append(KernelCall(name, module, part, event.shapes, event.kernels))
    return calls


def _around(events: Sequence[Event], place: int) -> Iterator[Event]:
    """An event and all that it is nested in, from the inside."""
    yield events[place]
    yield from (events[at] for at in _parents(events, place))


def _is_node(event: Event) -> bool:
    return event.scope == _BACKWARD or event.name.startswith("autograd::engine::evaluate_function")


def _forward_modules(events: Sequence[Event]) -> dict[tuple[int, int], str]:
    """The module for which each of autograd's nodes was made: the last operation before its number was taken."""
    found = {}
    for place, event in enumerate(events):
        around = list(_around(events, place))
        if event.sequence >= 0 and not _is_node(event):
            found[event.thread, event.sequence] = _module(around)
    return found


def _module(around: Sequence[Event]) -> str:
    """The module of the innermost range."""
    paths = (one.name.removeprefix(MODULE) for one in around if one.scope == _USER and one.name.startswith(MODULE))
    return next(paths, "")


def _where(events: Sequence[Event], place: int, modules: dict[tuple[int, int], str]) -> tuple[Part, str]:
    """The part of the step and the module of an event."""
    around = list(_around(events, place))
    if any(one.name == OPTIMIZER for one in around):
        return "optimizer", ""
    nodes = [one for one in around if _is_node(one)]
    if not nodes:
        return "forward", _module(around)
    again = _module(around)  # a forward pass that is done again within the backward pass
    numbered = [modules.get((one.forward_thread, one.sequence), "") for one in nodes if one.sequence >= 0]
    return "backward", again or next(iter(numbered), "")


def _innermost(events: Sequence[Event]) -> list[int]:
    """The operations that do work and do not consist of others that do."""
    work = [event.is_operation and not _is_node(event) and not _NO_WORK.fullmatch(event.name) for event in events]
    for place in range(len(events)):  # what an outer operation fills and copies is its own work
        if _MINOR.fullmatch(events[place].name) and any(work[at] for at in _parents(events, place)):
            work[place] = False
    composed = {at for place in range(len(events)) if work[place] for at in _parents(events, place)}
    return [place for place in range(len(events)) if work[place] and place not in composed]


def _parents(events: Sequence[Event], place: int) -> Iterator[int]:
    at = events[place].parent
    while at is not None:
        yield at
        at = events[at].parent


def cudnn_convolution(calls: Sequence[KernelCall]) -> bool | None:
    """Whether a convolution ran through cuDNN, by its own operations or by its kernels; None without a convolution."""
    convolutions = [call for call in calls if _CONVOLUTION.match(call.name)]
    if not convolutions:
        return None
    own = ("aten::cudnn_convolution", "aten::miopen_")  # the latter on ROCm
    return any(call.name.startswith(own) or _has_cudnn(call.kernels) for call in convolutions)


def _has_cudnn(kernels: Sequence[str]) -> bool:
    return any("at::native" not in kernel and _BY_CUDNN.search(kernel) for kernel in kernels)
