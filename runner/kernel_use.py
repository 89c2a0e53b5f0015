"""Which device kernels the operations of one training step ran, in one trial."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.jsonfile import of_fields, read_fields, write_json
from runner.operation import Part

SCHEMA = 1


@dataclass(frozen=True)
class KernelCall:
    """One operation and the kernels that it started itself.

    `name` is the operation as the profiler names it ("aten::cudnn_convolution"), `module` the path within the model of
    the module for which it was done, "" for none; `shapes` are those of the tensors that it was given ("64x3x7x7").
    `kernels` are sorted by name, one entry a start; there are none on a CPU.
    """

    name: str
    module: str
    part: Part
    shapes: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class KernelUse:
    """The operations of step `step` of trial `number` of a cell, in the order in which they were done.

    On a GPU those that started kernels, on a CPU (`device` is "cpu") those that do not consist of others.
    `cudnn_convolution` says whether a convolution ran through cuDNN, None where the step has no convolution.
    """

    cell: str
    number: int
    step: int
    device: str
    operations: tuple[KernelCall, ...]
    cudnn_convolution: bool | None

    def write(self, path: Path) -> None:
        """Write kernels.json."""
        write_json(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "KernelUse":
        """Read what `write` wrote. Raises StudyError naming path, field and what it holds for a damaged file."""
        return read_fields(path, SCHEMA, _made, "remove the trial's folder to have it done again")


def _made(fields: dict[str, Any]) -> KernelUse:
    calls = fields.get("operations")
    if isinstance(calls, list):
        fields = fields | {"operations": tuple(_call(one, place) for place, one in enumerate(calls))}
    return of_fields(KernelUse, fields)


def _call(found: Any, place: int) -> KernelCall:
    """An operation, with tuples where JSON has lists."""
    if isinstance(found, dict):
        found = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
    return of_fields(KernelCall, found, f"operations.{place}")
