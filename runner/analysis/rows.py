"""Rows: the same operation as several trials did it, and what of it counts when trials are told apart."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile

from runner.operation import Operation, Value
from runner.trace import Trace

Row = tuple[Operation, ...]  # one operation, of each trace in turn

UNKNOWN = "unknown"


def aligned(traces: Sequence[Trace]) -> list[Row]:
    """The operations that all traces begin with alike: same step, part, name, module, line and tensors' forms."""
    rows = zip(*(trace.operations for trace in traces), strict=False)
    return list(takewhile(_same_place, rows))


def _same_place(row: Row) -> bool:
    place = row[0].place
    return all(operation.place == place for operation in row[1:])


def differing(rows: Iterable[Row]) -> list[Row]:
    """The rows in which anything seen is not the same in all trials, or an operation did not repeat."""
    return [row for row in rows if _differs(row)]


def _differs(row: Row) -> bool:
    first = row[0]
    for one in row:
        if one.repeated is not None and not one.repeated.equal:
            return True
        if one is not first and (
            one.scalars != first.scalars
            or one.random != first.random
            or digests(one.inputs) != digests(first.inputs)
            or digests(one.outputs) != digests(first.outputs)
        ):
            return True
    return False


def digests(values: Iterable[Value]) -> list[str | None]:
    """The digests of some values."""
    return [value.digest for value in values]


def tensors_read(operation: Operation) -> tuple[str | None, ...]:
    """The digests of the tensors on which an operation's results depend.

    None where bits mean nothing, being overwritten unread or scratch; UNKNOWN where nobody could look at them.
    """
    return tuple(_read(operation, place, value) for place, value in enumerate(operation.inputs))


def _read(operation: Operation, place: int, value: Value) -> str | None:
    if value.digest is None and value.source is None and place not in operation.writes and operation.kind != "view":
        return UNKNOWN
    return value.digest


def groups(keys: Sequence[Hashable]) -> list[list[int]]:
    """The places of equal keys, of those that occur at least twice."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return [group for group in places.values() if len(group) > 1]


def numbered(keys: Sequence[Hashable]) -> list[int]:
    """For each key the place of its first occurrence: equal keys get equal numbers."""
    return [keys.index(key) for key in keys]
