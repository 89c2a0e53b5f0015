"""What a capture left of the operations whose inputs and outputs it was asked to keep, in its folder."""

import io
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from runner.errors import StudyError
from runner.jsonfile import of_fields, read_fields, write_bytes, write_json
from runner.study import Study

SCHEMA = 1
_REMEDY = "remove its folder, it is captured again"


@dataclass(frozen=True)
class CapturedOperation:
    """One operation as it was done in the capture's process.

    `index` and `name` are those of the trace, `device` is the type ("cuda") of the one where it worked; `flags` are the
    switches at that moment, `threads` those of the CPU. `inputs` is a digest of the bits of all tensors that went in
    and of all other arguments, None where the operation was not looked at. `repeated_equal` says whether all repeats on
    the same inputs gave the same bits, None where it was not repeated.

    `relative_error` is ||out - out64|| / ||out64||, where out64 is what the same operation gives in float64 on the same
    inputs, over all outputs together; `ulp_error` is the largest error of an element, in units in the last
    place of the output's type. Both are None where there is no float64 result.

    `tensors` and `outputs` say whether these were saved, `left_out` what is missing and why. `scratch` are the places
    among what it returns of memory that is no result.
    """

    index: int
    name: str
    device: str
    threads: int
    flags: dict[str, str | int | bool | None]
    inputs: str | None = None
    repeated_equal: bool | None = None
    relative_error: float | None = None
    ulp_error: float | None = None
    tensors: bool = False
    outputs: bool = False
    scratch: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Output:
    """One tensor that came out: its raw bits as unsigned integers in logical order, and the name of its type.

    A complex tensor is saved as its real and imaginary parts.
    """

    bits: np.ndarray
    dtype: str


@dataclass(frozen=True)
class Captured:
    """A capture: its folder and the operations in it, by index."""

    folder: Path
    operations: dict[int, CapturedOperation]

    @classmethod
    def read(cls, folder: Path) -> "Captured":
        """Read what `write_operations` wrote. Raises StudyError naming path and field for a damaged file."""
        found = read_fields(_operations_file(folder), SCHEMA, _made, _REMEDY)
        return cls(folder, {operation.index: operation for operation in found})

    def outputs(self, index: int) -> list[Output]:
        """What the operation gave. Raises StudyError naming the file if it is missing or damaged."""
        return _outputs(outputs_file(self.folder, index), "output")

    def again(self, index: int) -> list[Output]:
        """What it gave in the first repeat that differed; nothing where none did."""
        return _outputs(outputs_file(self.folder, index), "again")


def captures_of(study: Study, cell: str) -> list[Captured]:
    """The captures of a cell that came to their end; one that cannot be read is left out, as if it had never been."""
    folders = takewhile(Path.exists, (study.capture_folder(cell, number) for number in count()))
    found = []
    for folder in folders:
        with suppress(StudyError):
            found.append(Captured.read(folder))
    return found


def _made(fields: dict[str, Any]) -> list[CapturedOperation]:
    operations = fields.get("operations")
    if not isinstance(operations, list):
        raise ValueError("has no list of operations")
    return [of_fields(CapturedOperation, one, f"operations.{place}") for place, one in enumerate(operations)]


def _outputs(path: Path, name: str) -> list[Output]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            dtypes = [str(dtype) for dtype in arrays["dtypes"]]
            there = [(place, f"{name}-{place}") for place in range(len(dtypes)) if f"{name}-{place}" in arrays]
            return [Output(arrays[key], dtypes[place]) for place, key in there]
    except Exception as error:  # zipfile, zlib and numpy have no error in common for what damage does to them
        raise StudyError(f"{path}: not the outputs of an operation ({error}); {_REMEDY}") from error


def write_operations(folder: Path, operations: list[CapturedOperation]) -> None:
    """Write what is known of each operation; to be called last, when everything else is there."""
    write_json(_operations_file(folder), {"schema": SCHEMA, "operations": [asdict(one) for one in operations]})


def write_outputs(path: Path, outputs: list[Output], again: list[Output]) -> None:
    """Write the outputs of one operation, and of the repeat that differed if one did."""
    named = {"output": outputs, "again": again}
    arrays: dict[str, Any] = {
        f"{name}-{place}": one.bits for name, given in named.items() for place, one in enumerate(given)
    }
    buffer = io.BytesIO()
    np.savez(buffer, dtypes=np.array([one.dtype for one in outputs], dtype=str), **arrays)
    write_bytes(path, buffer.getvalue())


def _operations_file(folder: Path) -> Path:
    return folder / "operations.json"


def outputs_file(folder: Path, index: int) -> Path:
    """The outputs of an operation."""
    return folder / f"operation-{index}.npz"


def tensors_file(folder: Path, index: int) -> Path:
    """The operation with all its arguments as torch.save wrote them: {"name", "args", "kwargs"}."""
    return folder / f"operation-{index}.pt"
