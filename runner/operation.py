"""An operation as a probe saw it: what went in and came out, by digests, and where in the user's model it stands."""

from dataclasses import dataclass
from typing import Any, Literal

Part = Literal["forward", "backward", "optimizer"]
# computed: outputs follow from inputs; random: from a generator's state too; view: no new bits; uninitialised: any.
Kind = Literal["computed", "random", "view", "uninitialised"]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that went into an operation or came out of it.

    `digest` covers its raw bits, None where they mean nothing (views, uninitialised memory) or were not looked at.
    `source` is the index of the operation that wrote its memory last, None if none of the trace did. `not_finite` is
    "nan", "inf" or None for neither (NaN counts first), of outputs alone.
    """

    digest: str | None
    shape: tuple[int, ...]
    dtype: str
    source: int | None = None
    not_finite: str | None = None


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same operation done again on the same inputs within the process: whether its bits came again.

    `max_ulp` is the largest difference of two numbers in units in the last place, `max_relative` relative to the larger
    of the two, if both are finite; both over all outputs, 0 where nothing differs, None where only other things differ:
    integers, or NaN.
    """

    equal: bool
    max_ulp: int | None = None
    max_relative: float | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a trace.

    `index` counts them from 0 over the whole trace. `name` is an ATen operation ("aten.convolution.default"), or with
    probe=modules the class of a module ("Conv2d"). `module` is the path within the model ("layer1.0.conv1"), "" outside
    of its submodules; `line` the user's source line ("net.py:12"), None where none is known. `scalars` holds every
    argument that is no tensor, as text. `outputs` are what it returned, then what it wrote without returning it.
    `random` is the digest of the generator's state before a random operation. `writes` are the places among `inputs`
    of the tensors that it changes.
    """

    index: int
    step: int
    part: Part
    kind: Kind
    name: str
    module: str
    line: str | None
    scalars: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    writes: tuple[int, ...] = ()
    random: str | None = None
    repeated: Repeated | None = None

    @property
    def place(self) -> tuple[Any, ...]:
        """What must be equal in two traces for their operations to be the same one: all but bits and numbers."""
        forms = tuple((value.shape, value.dtype) for value in (*self.inputs, *self.outputs))
        return self.step, self.part, self.name, self.module, self.line, forms
