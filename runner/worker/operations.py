"""probe=ops: every ATen operation of the first steps, in a file beside the record."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn

from runner.layout import trace_file
from runner.operation import Operation
from runner.trace import Trace
from runner.trial import Trial
from runner.worker.capture import Capture
from runner.worker.tracer import Tracer


class OperationProbe:
    """The operations of the first steps of a trial; those that it is to capture are kept whole."""

    def __init__(self, trial: Trial, model: nn.Module):
        self._trial, self._model = trial, model
        self._capture = Capture(trial.capture)
        self._tracer = Tracer(model, trial.config["probe"]["repeat"], self._capture)

    @property
    def operations(self) -> list[Operation]:
        """What was seen up to the last traced step."""
        return list(self._tracer.recorder.operations())

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Trace this step, if it is one of the first."""
        if number > self._trial.config["probe"]["steps"]:
            yield
            return
        tracer = self._tracer
        tracer.storages.forget_freed()
        for parameter in self._model.parameters():
            tracer.storages.belongs(parameter, tracer.attribution.module_of(parameter))
        with tracer.recorder.recording(number), tracer.attribution.following(), tracer:
            yield

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Tell the optimizer's operations from those of the forward pass."""
        tracer = self._tracer
        tracer.optimizing = True
        for parameter in self._model.parameters():
            if parameter.grad is not None:
                tracer.storages.belongs(parameter.grad, tracer.attribution.module_of(parameter))
        try:
            yield
        finally:
            tracer.optimizing = False

    def write(self, folder: Path) -> None:
        """Write the trace, and what was kept of single operations."""
        trial, step = self._trial, self._tracer.recorder.step
        Trace("ops", trial.cell, trial.number, step, tuple(self.operations)).write(trace_file(folder))
        if trial.capture:
            self._capture.write(folder)
