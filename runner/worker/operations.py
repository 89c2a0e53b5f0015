"""probe=ops: every ATen operation of the first steps, in a file beside the record."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torch import nn

from runner.operation import Operation
from runner.study import ops_file
from runner.trace import Trace
from runner.trial import Trial
from runner.worker.tracer import Keeper, Tracer


class OperationProbe:
    """The operations of the first steps of a trial."""

    def __init__(self, trial: Trial, model: nn.Module, keeper: Keeper | None = None):
        self._trial, self._model, self._keeper = trial, model, keeper
        self._tracer = Tracer(model, trial.config["probe"]["repeat"], keeper)

    @property
    def operations(self) -> list[Operation]:
        """What was seen up to the last traced step."""
        return self._tracer.operations

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Trace this step, if it is one of the first; what a failing step has done is kept as far as possible."""
        if number > self._trial.config["probe"]["steps"]:
            yield
            return
        tracer = self._tracer
        tracer.number = number
        for parameter in self._model.parameters():
            tracer.storages.belongs(parameter, tracer.attribution.module_of(parameter))
        try:
            with tracer.attribution.following(), tracer:
                yield
        except BaseException:
            with suppress(RuntimeError):  # the device may be what has failed
                tracer.read()
            raise
        tracer.read()

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
        trial, tracer = self._trial, self._tracer
        Trace("ops", trial.cell, trial.number, tracer.number, tuple(self.operations)).write(ops_file(folder))
        if self._keeper:
            self._keeper.write(folder)


def operation_probe(trial: Trial, model: nn.Module) -> OperationProbe:
    """The probe for a trial, with a capture if the trial asks for one."""
    if not trial.capture:
        return OperationProbe(trial, model)
    from runner.worker.capture import Capture

    return OperationProbe(trial, model, Capture(trial.capture))
