"""Traces of a made-up training: bits follow from bits as in a real one, so what is planted shows where it would."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from runner.analysis.finding import Finding
from runner.analysis.traces import Compared, compare
from runner.operation import Kind, Operation, Part, Repeated, Value
from runner.trace import Trace


def bits(*parts: Any) -> str:
    """A digest that stands for bits."""
    return sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass
class Memory:
    """A tensor: its bits now, the operation that wrote them, its form."""

    digest: str
    source: int | None = None
    shape: tuple[int, ...] = (4, 4)


@dataclass
class Machine:
    """Does operations and keeps their trace.

    `noise` has "name in module" or "name in module at step" of operations whose results differ from trial to trial,
    `unsteady` the same of operations that do not repeat within the process; with `repeat` those that write nothing
    are repeated.
    """

    number: int
    noise: Sequence[str] = ()
    unsteady: Sequence[str] = ()
    repeat: bool = False
    step: int = 1
    part: Part = "forward"
    operations: list[Operation] = field(default_factory=list)
    generator: str = "seed 0"

    def do(
        self,
        name: str,
        *inputs: Memory,
        module: str = "",
        kind: Kind = "computed",
        scalars: str = "",
        writes: Sequence[int] = (),
        overwrites: bool = False,
        not_finite: str | None = None,
    ) -> Memory:
        """Do an operation; gives the tensor that it made, or the first one that it wrote."""
        index, random = len(self.operations), self.generator if kind == "random" else None
        unread = writes if overwrites else ()
        read = tuple(
            Value(None if place in unread else one.digest, one.shape, "float32", one.source)
            for place, one in enumerate(inputs)
        )
        unsteady, noisy = self._is(self.unsteady, name, module), self._is(self.noise, name, module)
        result = bits(name, [value.digest for value in read], scalars, random, self.number if noisy or unsteady else 0)
        if kind == "random":
            self.generator = bits(self.generator)
        shape = inputs[0].shape if inputs else (4, 4)
        seen = result if kind not in ("view", "uninitialised") else None
        repeated = Repeated(not unsteady, 3 if unsteady else 0, 2e-7 if unsteady else 0.0)
        self.operations.append(
            Operation(
                index=index,
                step=self.step,
                part=self.part,
                kind=kind,
                name=name,
                module=module,
                line="net.py:7",
                scalars=scalars,
                inputs=read,
                outputs=(Value(seen, shape, "float32", None, not_finite),),
                writes=tuple(writes),
                random=random,
                repeated=repeated if self.repeat and kind == "computed" and not writes else None,
            )
        )
        for place in writes:
            inputs[place].digest, inputs[place].source = result, index
        if writes:
            return inputs[writes[0]]
        return inputs[0] if kind == "view" else Memory(result, index, shape)

    def _is(self, planted: Sequence[str], name: str, module: str) -> bool:
        place = f"{name.removeprefix('aten.')} in {module}"
        return place in planted or f"{place} at {self.step}" in planted

    def trace(self, **changes: Any) -> Trace:
        """What was done so far."""
        fields: dict[str, Any] = {"level": "ops", "cell": "c", "number": self.number, "steps": self.step}
        return Trace(**fields | {"operations": tuple(self.operations)} | changes)


def training(machine: Machine, steps: int = 2, start: str = "start", data: Sequence[str] = ()) -> Machine:
    """Train a convolution, a batch norm, dropout and a linear layer; `data` are the bits of each step's batch."""
    conv, head, mean = Memory(bits(start, "conv")), Memory(bits(start, "head")), Memory(bits("mean"))
    for machine.step in range(1, steps + 1):
        batch = Memory(data[machine.step - 1] if data else bits("batch", machine.step))
        one_step(machine, batch, conv, head, mean)
    return machine


def one_step(machine: Machine, batch: Memory, conv: Memory, head: Memory, mean: Memory, rate: float = 0.1) -> None:
    """Forward, backward, optimizer."""
    machine.part = "forward"
    seen = machine.do("aten.convolution", batch, conv, module="conv")
    normal = machine.do("aten.native_batch_norm", seen, mean, module="norm", writes=[1])
    normal = machine.do("aten.relu", seen, normal, module="norm")
    dropped = machine.do("aten.native_dropout", normal, module="drop", kind="random")
    flat = machine.do("aten.view", dropped, kind="view", scalars="[4, 4]")
    logits = machine.do("aten.addmm", flat, head, module="head")
    machine.do("aten.nll_loss2d_forward", logits)
    machine.part = "backward"
    gradient = machine.do("aten.nll_loss2d_backward", logits)
    of_head = machine.do("aten.mm", gradient, flat, module="head")
    passed = machine.do("aten.native_dropout_backward", gradient, dropped, module="drop")
    of_conv = machine.do("aten.convolution_backward", passed, batch, module="conv")
    machine.part = "optimizer"
    machine.do("aten.add_", head, of_head, module="head", writes=[0], scalars=f"alpha=-{rate}")
    machine.do("aten.add_", conv, of_conv, module="conv", writes=[0], scalars=f"alpha=-{rate}")


def trainings(n: int = 2, steps: int = 2, **planted: Any) -> list[Trace]:
    """The traces of n trials with these things planted."""
    return [training(Machine(number, **planted), steps).trace() for number in range(n)]


def told(compared: Compared) -> list[tuple[str, str, str, int]]:
    """Rung, operation, module and step of everything found."""
    return [(one.rung, one.name.removeprefix("aten."), one.module, one.step) for one in compared.findings]


def only(compared: Compared) -> Finding:
    """The one finding there is."""
    (found,) = compared.findings
    return found


def stepped(change: Callable[[Machine, dict[str, Memory]], Any], n: int = 2) -> Compared:
    """The comparison of trials that do one step, then what is given, then another step."""
    traces = []
    for number in range(n):
        machine = Machine(number)
        tensors = {name: Memory(bits(name)) for name in ("batch", "conv", "head", "mean")}
        one_step(machine, **tensors)
        rate = change(machine, tensors)
        machine.step = 2
        one_step(machine, **tensors, rate=rate or 0.1)
        traces.append(machine.trace())
    return compare(traces)
