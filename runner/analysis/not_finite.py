"""The operation that made the first number that is none: where a NaN or an infinity comes from."""

from collections.abc import Sequence
from dataclasses import replace

from runner.analysis.finding import Finding, finding, where
from runner.operation import Operation
from runner.trace import Trace

NAMES = {"nan": "NaN", "inf": "infinity"}


def first_not_finite(traces: Sequence[Trace]) -> Finding | None:
    """The operation that made a NaN from none, in the first trace that has one; else what led to the last infinity.

    A NaN often follows from an infinity: then the words say which operation made that. An infinity that led to nothing
    (a mask before a softmax) is passed over as long as there is a NaN.
    """
    for trace in traces:
        found = _made(trace)
        if found:
            return found
    return None


def _made(trace: Trace) -> Finding | None:
    nan = next((one for one in trace.operations if _gives(one, "nan")), None)
    last = nan or next((one for one in reversed(trace.operations) if _gives(one, "inf")), None)
    if last is None:
        return None
    maker, infinite = (last, _source(trace, last)) if nan else (_source(trace, last) or last, None)
    kind = NAMES["nan" if nan else "inf"]
    after = f" from an infinity, which {where(infinite)} made" if infinite else _doubt(maker)
    found = finding("operation", maker, [trace.number], 1)
    return replace(found, words=f"{where(maker)} makes the first {kind} of trial {trace.number}{after}")


def _gives(operation: Operation, kind: str) -> bool:
    return any(value.not_finite == kind for value in operation.outputs)


def _source(trace: Trace, operation: Operation) -> Operation | None:
    """The operation at the start of the chain of infinities that led to this one, None if none did."""
    start, seen = None, {operation.index}
    while True:
        sources = {value.source for value in operation.inputs if value.source is not None} - seen
        before = [one for one in (trace.operations[source] for source in sorted(sources)) if _gives(one, "inf")]
        if not before:
            return start
        start = operation = before[0]
        seen.add(operation.index)


def _doubt(maker: Operation) -> str:
    """What was made before the trace was not looked at."""
    outside = any(value.source is None and value.dtype not in INTEGER for value in maker.inputs)
    return ", unless its input from outside the trace held one" if outside else " from finite inputs"


INTEGER = ("bool", "uint8", "int8", "int16", "int32", "int64")
