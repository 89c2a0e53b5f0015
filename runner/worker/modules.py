"""probe=modules: what every module of the model took and gave in the first steps, its gradients and its new weights.

Digests are taken where the tensors are and read at the end of a step. Gradients between modules are entries as they
arrive; those of parameters follow, module after module in the order in which the pass reaches them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from runner.layout import trace_file
from runner.trace import Trace
from runner.trial import Trial
from runner.worker.bits import has_bits
from runner.worker.digest import lanes
from runner.worker.gradients import Gradients
from runner.worker.hooks import uncompiled
from runner.worker.module_calls import Calls
from runner.worker.recorder import Known, Recorder

COMPILED = "the model is compiled: its forward pass is one entry, and the order of its gradients is that of its modules"


class ModuleProbe:
    """The modules of a model in the first steps of a trial."""

    def __init__(self, trial: Trial, model: nn.Module, device: torch.device):
        self._trial, self._outer, self._device = trial, model, device
        self._model = uncompiled(model)
        self._compiled = model is not self._model
        self._owners = {path: module for path, module in self._model.named_modules() if _state_of(module)}
        self._recorder = Recorder()
        self._states: dict[str, list[Known]] = {}
        self._calls: Calls | None = None

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Trace this step, if it is one of the first."""
        if number > self._trial.config["probe"]["steps"]:
            yield
            return
        with self._recorder.recording(number):
            self._states = self._states or self._looked_at(self._own(), made=False)
            gradients = Gradients(self._recorder, self._model)
            self._calls = Calls(self._recorder, self._device, self._states, gradients)
            try:
                with self._calls.following(self._outer):
                    yield
            finally:
                gradients.end()
                self._calls = None

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Record the gradients before, and what became of the weights after."""
        if self._calls is None:
            yield
            return
        gradients = self._gradients(self._calls)
        together = self._together(gradients)
        yield
        self._updates(self._calls, gradients, together)

    def write(self, folder: Path) -> None:
        """Write the trace."""
        trial, recorder = self._trial, self._recorder
        note = COMPILED if self._compiled else None
        operations = tuple(recorder.operations())
        Trace("modules", trial.cell, trial.number, recorder.step, operations, note).write(trace_file(folder))

    def _gradients(self, calls: Calls) -> dict[str, list[Known]]:
        """The gradients of each module's own parameters, recorded in the order in which they were computed."""
        order = {path: (calls.position(path), place) for place, path in enumerate(self._owners)}
        found = {}
        for path in sorted(order, key=order.__getitem__, reverse=True):
            parameters = _parameters_of(self._owners[path])
            found[path] = [parameter.grad for parameter in parameters if parameter.grad is not None]
        found = {path: gradients for path, gradients in found.items() if gradients}
        looked_at = self._looked_at(found)
        before = calls.gradients.given
        for path, gradients in looked_at.items():
            behind = calls.gradients.behind(_parameters_of(self._owners[path])) or before
            inputs = [*dict.fromkeys([*behind, *calls.taken.get(path, ()), *self._states[path]])]
            self._recorder.add("backward", f"gradient of {self._class(path)}", path, inputs, gradients)
            before = gradients
        return looked_at

    def _updates(self, calls: Calls, gradients: dict[str, list[Known]], together: list[Known]) -> None:
        """What parameters and buffers became of; buffers, which a forward pass changes, are looked at here too."""
        new = self._looked_at(self._own())
        for path, state in new.items():
            inputs = [*calls.taken.get(path, ()), *gradients.get(path, ()), *self._states[path], *together]
            self._recorder.add("optimizer", f"update of {self._class(path)}", path, inputs, state)
        self._states = new

    def _together(self, gradients: dict[str, list[Known]]) -> list[Known]:
        """All gradients as one value where they decide together: in fp16 one that is not finite cancels all updates.

        And the length of all is what each is scaled by with train.clip_norm.
        """
        config = self._trial.config
        clipped = config.get("train", {}).get("clip_norm") is not None
        if config.get("precision", {}).get("name") != "fp16" and not clipped:
            return []
        index, every = self._recorder.next_index, [known for some in gradients.values() for known in some]
        there = [one.grad for one in self._model.parameters() if one.grad is not None and has_bits(one.grad)]
        together = [self._recorder.look_at(lanes(there), index, finite=True)]
        self._recorder.add("backward", "all gradients", "", every, together)
        return together

    def _looked_at(self, tensors: dict[str, list[Tensor]], made: bool = True) -> dict[str, list[Known]]:
        """Tensors by module, as they are now; `made` where each module's are the outputs of the entries added next."""
        index = self._recorder.next_index
        sources = [index + place if made else None for place, some in enumerate(tensors.values()) for _ in some]
        flat = [tensor for some in tensors.values() for tensor in some]
        known = iter(self._recorder.look_at_each(flat, sources, finite=made))
        return {path: list(islice(known, len(some))) for path, some in tensors.items()}

    def _own(self) -> dict[str, list[Tensor]]:
        return {path: _state_of(module) for path, module in self._owners.items()}

    def _class(self, path: str) -> str:
        return type(self._owners[path]).__name__


def _state_of(module: nn.Module) -> list[Tensor]:
    """A module's own parameters and buffers, without the walk over all its modules that `parameters` does."""
    return [*_parameters_of(module), *(one for one in module._buffers.values() if one is not None)]


def _parameters_of(module: nn.Module) -> list[nn.Parameter]:
    return [one for one in module._parameters.values() if one is not None]
