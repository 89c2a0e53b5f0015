"""A trace: what a probe recorded of one trial's first steps, operation by operation, and its file."""

import gc
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from runner.errors import StudyError
from runner.jsonfile import write_bytes
from runner.operation import Operation, Repeated, Value

SCHEMA = 1
Level = Literal["ops", "modules"]
_TEXT, _NUMBER = {str}, (int, float, type(None))
_WAY_OUT = "remove the trial's folder to have it done again"


@dataclass(frozen=True)
class Trace:
    """The operations ("ops") or module calls ("modules") of the first `steps` steps of trial `number` of a cell.

    In the order in which they were done, each at the place of its `index`. `note` says what the trace does not show.
    """

    level: Level
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
        last = max((one.step for one in operations), default=0)
        if last > header["steps"]:
            raise StudyError(f"{path}: its header counts {header['steps']} steps, step {last} is there; {_WAY_OUT}")
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
    kinds: dict[str, set[type]] = {
        "level": {str},
        "cell": {str},
        "number": {int},
        "steps": {int},
        "note": {str, type(None)},
    }
    if header.keys() != kinds.keys() or not all(type(header[key]) in kind for key, kind in kinds.items()):
        raise StudyError(f"{path}: its header holds {lines[0][:120]}, {', '.join(kinds)} are due; {_WAY_OUT}")
    if header["level"] not in get_args(Level):
        raise StudyError(f"{path}: level {header['level']}, {' or '.join(get_args(Level))} is due; {_WAY_OUT}")
    return dict(header)


def _parsed(path: Path, index: int, line: str) -> Operation:
    try:
        step, part, kind, name, module, where, scalars, inputs, outputs, writes, random, again = json.loads(line)
        if {type(one) for one in (part, kind, name, module, scalars)} != _TEXT or type(step) is not int:
            raise TypeError("step, part, kind, name, module or scalars is of another type")
        if not (_maybe_text(where) and _maybe_text(random)):
            raise TypeError("line or random is no text")
        if writes and not all(type(place) is int and 0 <= place < len(inputs) for place in writes):
            raise ValueError(f"it writes {writes} of {len(inputs)} inputs")
        return Operation(
            index,
            step,
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
            None if again is None else _repeated(*again),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise StudyError(f"{path}: operation {index} cannot be read ({error}): {line[:60]!r}; {_WAY_OUT}") from error


def _maybe_text(found: Any) -> bool:
    return found is None or type(found) is str


def _repeated(equal: Any, max_ulp: Any, max_relative: Any) -> Repeated:
    if type(equal) is not bool or type(max_ulp) not in _NUMBER or type(max_relative) not in _NUMBER:
        raise TypeError("what is said of its repeat is of another type")
    return Repeated(equal, max_ulp, max_relative)


def _value(digest: Any, shape: Any, dtype: Any, source: Any, not_finite: Any) -> Value:
    if type(dtype) is not str or not (_maybe_text(digest) and _maybe_text(not_finite)):
        raise TypeError("digest or type of a value is no text")
    if not (source is None or type(source) is int) or not {int}.issuperset(map(type, shape)):
        raise TypeError("source or shape of a value are no whole numbers")
    return Value(digest, tuple(shape), dtype, source, not_finite)
