"""Where in the user's model an operation stands: its module and the line of source that asked for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

Place = tuple[str, str | None]  # the module's path, and "net.py:12"

_TORCH = os.path.dirname(torch.__file__) + os.sep
_WORKER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ENGINE = torch.autograd.graph.__file__, "_engine_run_backward"
_PROBE = {_WORKER + name for name in ("attribution.py", "tracer.py")}


class Attribution:
    """Follows the calls of a model's modules, and autograd's nodes back to the forward operations that made them.

    PyTorch's hooks for all modules are used, not hooks of each: some modules take another path when they have any. A
    module that is used twice keeps its first name.
    """

    def __init__(self, model: nn.Module):
        self._names = {id(module): name for name, module in model.named_modules()}
        self._modules: list[int] = []
        self._forward: dict[int, Place] = {}
        self._recomputed: dict[int, Place] = {}
        self._recomputing: set[int] = set()
        self._parameters: dict[int, str] = {
            id(parameter): name
            for name, module in model.named_modules()
            for parameter in module.parameters(recurse=False)
        }

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow one step."""
        for left in (self._modules, self._forward, self._recomputed, self._recomputing):
            left.clear()
        enter = register_module_forward_pre_hook(self._enter)
        leave = register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()

    def _enter(self, module: nn.Module, _: Any) -> None:
        if id(module) in self._names:
            self._modules.append(id(module))

    def _leave(self, module: nn.Module, *_: Any) -> None:
        if id(module) in self._names:
            while self._modules and self._modules.pop() != id(module):
                pass  # one that raised before its hooks were called

    def module_of(self, parameter: Any) -> str:
        """The module that owns a parameter, "" for what is none of the model's."""
        return self._parameters.get(id(parameter), "")

    def here(self) -> Place:
        """The place of the operation that is being done, in the forward pass or in the backward pass."""
        node = torch._C._current_autograd_node()
        place = self._names[self._modules[-1]] if self._modules else "", _user_line()
        if node is None or torch.is_grad_enabled():  # the latter where a backward pass computes activations again
            self._remember(place, node is not None)
        return place if node is None or self._modules else self._of(node, place[1])

    def _remember(self, place: Place, again: bool) -> None:
        """Autograd numbers its nodes; the first operation after a node was made is the one it was made for.

        Each thread counts for itself, so what is computed again is kept apart from the forward pass.
        """
        number = torch._C._autograd._get_sequence_nr() - 1
        (self._recomputed if again else self._forward).setdefault(number, place)
        if again:
            self._recomputing.add(torch._C._current_graph_task_id())

    def _of(self, node: Any, line: str | None) -> Place:
        """The place of the forward operation behind a node; a line of the user's own backward counts more."""
        number, task = node._sequence_nr(), torch._C._current_graph_task_id()
        nested = bool(self._recomputing) and task not in self._recomputing
        place = (self._recomputed.get(number) if nested else None) or self._forward.get(number)
        if place is None:  # nodes that accumulate a parameter's gradient have no number
            return self.module_of(getattr(node, "variable", None)), line
        return place[0], line or place[1]


def _user_line() -> str | None:
    """The innermost line of Python that is neither PyTorch's nor ours.

    None where the worker itself asked, and where autograd did: the line that called it says nothing.
    """
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        shown = _shown(file)
        if shown is not None:
            return f"{shown}:{frame.f_lineno}"
        if (file.startswith(_WORKER) and file not in _PROBE) or (file, frame.f_code.co_name) == _ENGINE:
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None


@cache
def _shown(file: str) -> str | None:
    """A user's file as seen from the working folder or the package that it belongs to; None for anything else."""
    if file.startswith((_TORCH, _WORKER, "<")):
        return None
    path = os.path.abspath(file)
    roots = [os.path.abspath(root) + os.sep for root in ("", *sys.path)]
    within = [root for root in roots if path.startswith(root)]
    return path[len(max(within, key=len)) :] if within else os.path.basename(path)
