"""What a capture left of the operations whose inputs and outputs it was asked to keep, in its folder."""

import io
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from runner.errors import StudyError
from runner.jsonfile import of_fields, read_fields, write_bytes, write_json
from runner.layout import operations_file, outputs_file, tensors_file
from runner.size import Output, Size
from runner.study import Study

SCHEMA = 1
_REMEDY = "remove its folder, it is captured again"


@dataclass(frozen=True)
class CapturedOperation:
    """One operation as it was done in the capture's process.

    `index` and `name` are those of the trace; `flags` are the switches at that moment, `threads` those of the CPU.
    `inputs` is a digest of the bits of all tensors that went in and of all other arguments, None where the operation
    was not looked at. `repeated` says how far the first repeat on the same inputs lay off that gave other bits, 0
    elements differing where none of them did; None where it was not repeated.

    `relative_error` is ||out - out64|| / ||out64||, where out64 is what the same operation gives in float64 on the same
    inputs, over all outputs together; None where there is no float64 result, or only zeros.

    `tensors` and `outputs` say whether these were saved, `left_out` what is missing and why. `scratch` are the places
    among what it returns of memory that is no result. `tensors_bytes` and `tensors_crc32` are size and CRC-32 of the
    file with its arguments, None where none was written.
    """

    index: int
    name: str
    threads: int
    flags: dict[str, str | int | bool | None]
    inputs: str | None = None
    repeated: Size | None = None
    relative_error: float | None = None
    tensors: bool = False
    outputs: bool = False
    tensors_bytes: int | None = None
    tensors_crc32: int | None = None
    scratch: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Captured:
    """A capture: its folder and the operations in it, by index."""

    folder: Path
    operations: dict[int, CapturedOperation]

    @classmethod
    def read(cls, folder: Path) -> "Captured":
        """Read what `write_operations` wrote. Raises StudyError naming path and field for a damaged file."""
        found = read_fields(operations_file(folder), SCHEMA, _made, _REMEDY)
        return cls(folder, {operation.index: operation for operation in found})

    def outputs(self, index: int) -> list[Output]:
        """What the operation gave. Raises StudyError naming the file if it is missing or damaged."""
        path = outputs_file(self.folder, index)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return [Output(arrays[f"output-{place}"], str(dtype)) for place, dtype in enumerate(arrays["dtypes"])]
        except Exception as error:  # zipfile, zlib and numpy have no error in common for what damage does to them
            raise StudyError(f"{path}: not the outputs of an operation ({error}); {_REMEDY}") from error

    def tensors(self, index: int) -> Path:
        """The file with the operation's arguments. Raises StudyError if it is not there or not as it was written."""
        path, operation = tensors_file(self.folder, index), self.operations[index]
        if operation.tensors and not path.is_file():
            raise StudyError(f"{path}: the tensors of operation {index} are missing; {_REMEDY}")
        written = operation.tensors_bytes, operation.tensors_crc32
        if operation.tensors and None not in written and checksum(path) != written:
            raise StudyError(f"{path}: the tensors of operation {index} are damaged; {_REMEDY}")
        return path


def checksum(path: Path) -> tuple[int, int]:
    """Size in bytes and CRC-32 of a file. Raises StudyError if it cannot be read."""
    size_bytes = crc32 = 0
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                size_bytes, crc32 = size_bytes + len(part), zlib.crc32(part, crc32)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror}); {_REMEDY}") from error
    return size_bytes, crc32


def captures_of(study: Study, cell: str) -> list[Captured]:
    """The captures of a cell that came to their end; one that cannot be read is left out, as if it had never been."""
    found = []
    for folder in study.capture_folders(cell):
        with suppress(StudyError):
            found.append(Captured.read(folder))
    return found


def _made(fields: dict[str, Any]) -> list[CapturedOperation]:
    operations = fields.get("operations")
    if not isinstance(operations, list):
        raise ValueError("has no list of operations")
    return [_operation(one, f"operations.{place}") for place, one in enumerate(operations)]


def _operation(found: Any, part: str) -> CapturedOperation:
    repeated = found.get("repeated") if isinstance(found, dict) else None
    if repeated is not None:
        found = found | {"repeated": of_fields(Size, repeated, f"{part}.repeated")}
    return of_fields(CapturedOperation, found, part)


def write_operations(folder: Path, operations: list[CapturedOperation]) -> None:
    """Write what is known of each operation; to be called last, when everything else is there."""
    write_json(operations_file(folder), {"schema": SCHEMA, "operations": [asdict(one) for one in operations]})


def write_outputs(folder: Path, index: int, outputs: Sequence[Output]) -> None:
    """Write the outputs of one operation."""
    arrays: dict[str, Any] = {f"output-{place}": one.bits for place, one in enumerate(outputs)}
    buffer = io.BytesIO()
    np.savez(buffer, dtypes=np.array([one.dtype for one in outputs], dtype=str), **arrays)
    write_bytes(outputs_file(folder, index), buffer.getvalue())
