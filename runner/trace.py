"""A trace: what a probe recorded of one trial's first steps, operation by operation, and its file."""

import gc
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.errors import StudyError
from runner.jsonfile import write_bytes
from runner.operation import Operation, Repeated, Value

SCHEMA = 1
_WAY_OUT = "remove the trial's folder to have it done again"


@dataclass(frozen=True)
class Trace:
    """The operations ("ops") or module calls ("modules") of the first `steps` steps of trial `number` of a cell.

    In the order in which they were done, each at the place of its `index`. `note` says what the trace does not show.
    """

    level: Literal["ops", "modules"]
    cell: str
    number: int
    steps: int
    operations: tuple[Operation, ...]
    note: str | None = None

    def write(self, path: Path) -> None:
        """Write compressed JSON lines: a header, an array for each operation, their number."""
        header = {"schema": SCHEMA, "level": self.level, "cell": self.cell, "number": self.number}
        lines: list[Any] = [header | {"steps": self.steps, "note": self.note}]
        lines += map(_listed, self.operations)
        lines.append({"operations": len(self.operations)})
        text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
        write_bytes(path, gzip.compress(f"{text}\n".encode(), compresslevel=1, mtime=0))

    @classmethod
    def read(cls, path: Path) -> "Trace":
        """Read what `write` wrote.

        Raises StudyError naming the path, when the file is missing, truncated, damaged or of another version.
        """
        try:
            lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise StudyError(f"{path}: cannot be read ({error}); {_WAY_OUT}") from error
        header, count = _header(path, lines), max(len(lines) - 2, 0)
        if lines[-1] != f'{{"operations":{count}}}':
            raise StudyError(
                f"{path}: ends after {count} operations with {lines[-1][:60]!r}, not their number; {_WAY_OUT}"
            )
        with _no_collection():
            operations = tuple([_parsed(path, index, line) for index, line in enumerate(lines[1:-1])])
        return cls(operations=operations, **header)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing of a trace is garbage, and to look for some among a million new objects takes as long as to read them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _listed(operation: Operation) -> list[Any]:
    inputs, outputs = (
        [[one.digest, one.shape, one.dtype, one.source, one.not_finite] for one in values]
        for values in (operation.inputs, operation.outputs)
    )
    again = operation.repeated and [
        operation.repeated.equal,
        operation.repeated.max_ulp,
        operation.repeated.max_relative,
    ]
    where = [operation.step, operation.part, operation.kind, operation.name, operation.module, operation.line]
    return [*where, operation.scalars, inputs, outputs, operation.writes, operation.random, again]


def _header(path: Path, lines: list[str]) -> dict[str, Any]:
    """The fields of the first line, checked."""
    try:
        header = json.loads(lines[0])
        schema = header.pop("schema")
    except (IndexError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise StudyError(f"{path}: has no header ({error}); {_WAY_OUT}") from error
    if schema != SCHEMA:
        raise StudyError(f"{path}: schema {schema}, this version reads schema {SCHEMA}; use the version that wrote it")
    kinds = {"level": str, "cell": str, "number": int, "steps": int, "note": str | None}
    if header.keys() != kinds.keys() or not all(isinstance(header[key], kind) for key, kind in kinds.items()):
        raise StudyError(f"{path}: its header holds {lines[0][:120]}, {', '.join(kinds)} are due; {_WAY_OUT}")
    return dict(header)


def _parsed(path: Path, index: int, line: str) -> Operation:
    try:
        step, part, kind, name, module, where, scalars, inputs, outputs, writes, random, again = json.loads(line)
        return Operation(
            index,
            int(step),
            part,
            kind,
            name,
            module,
            where,
            scalars,
            tuple([_value(*one) for one in inputs]),
            tuple([_value(*one) for one in outputs]),
            tuple(writes),
            random,
            again and Repeated(*again),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise StudyError(f"{path}: operation {index} cannot be read ({error}): {line[:60]!r}; {_WAY_OUT}") from error


def _value(digest: Any, shape: Any, dtype: Any, source: Any, not_finite: Any) -> Value:
    return Value(digest, tuple(shape), dtype, source, not_finite)
