"""Where a tensor's bits come from: whether what wrote it explains that trials find other bits in it."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Literal

from runner.analysis.finding import Finding, finding, where
from runner.analysis.rows import Row, groups
from runner.operation import Operation, Value
from runner.trace import Trace

End = Literal["operation", "uninitialised", "outside"]
WORDS = {
    "outside": "reads a tensor that nothing in the trace wrote, and it differs: made before the first step (a buffer "
    "or attribute of the model), or by code outside ATen",
    "operation": "reads a tensor that {writer} left equal, and it differs: changed by code outside ATen",
    "uninitialised": "reads memory in which nothing was written since {maker} made it",
}


def origins(rows: Sequence[Row], traces: Sequence[Trace], same_start: bool) -> Iterator[Finding]:
    """The tensors whose bits differ between trials in which whatever wrote them gave equal bits.

    Without the same start a tensor that no operation of the trace wrote may be a weight: nothing is said of it.
    """
    numbers = [trace.number for trace in traces]
    for row in rows:
        first = row[0]
        if first.kind in ("view", "uninitialised"):
            continue
        for place in range(len(first.inputs)):
            values = [operation.inputs[place] for operation in row]
            bits = tuple(value.digest for value in values)
            if len(set(bits)) == 1 or None in bits:
                continue
            for members, writer, end in _unexplained(values, traces):
                if end == "outside" and not same_start:
                    continue
                trials, distinct = [numbers[one] for one in members], len({bits[one] for one in members})
                yield _found(first, trials, distinct, writer, _maker(traces[members[0]], values[members[0]]), end)


def start_readers(rows: Sequence[Row]) -> list[str]:
    """The first operation of each module that reads a tensor from before the trace which is not the same in all trials.

    Where the initial weights differ, these are what reads them first.
    """
    first: dict[str, str] = {}
    for row in rows:
        for values in zip(*(operation.inputs for operation in row), strict=True):
            bits = {value.digest for value in values}
            if len(bits) > 1 and None not in bits and all(value.source is None for value in values):
                first.setdefault(row[0].module, where(row[0]))
    return list(first.values())


def _unexplained(values: list[Value], traces: Sequence[Trace]) -> Iterator[tuple[list[int], Operation | None, End]]:
    """Groups of trials with other bits in a tensor that had the same history, its last writer, and how it began."""
    last = [_outputs(trace, value.source) for trace, value in zip(traces, values, strict=True)]
    for members in groups(last):
        if len({values[one].digest for one in members}) == 1:
            continue
        histories = [_history(traces[one], values[one]) for one in members]
        for alike in groups([written for written, _ in histories]):
            if len({values[members[one]].digest for one in alike}) > 1:
                chosen, source = [members[one] for one in alike], values[members[alike[0]]].source
                writer = None if source is None else traces[chosen[0]].operations[source]
                yield chosen, writer, histories[alike[0]][1]


def _outputs(trace: Trace, source: int | None) -> tuple[Any, ...]:
    """What an operation of the trace wrote, as a key; one that nobody looked at is like no other."""
    if source is None:
        return ()
    operation = trace.operations[source]
    bits = tuple(value.digest for value in operation.outputs)
    unknown = operation.kind != "uninitialised" and not any(bits)
    return source, bits, trace.number if unknown else None


def _history(trace: Trace, value: Value) -> tuple[tuple[Any, ...], End]:
    """Everything that was written to a tensor's memory, back to where the memory came from, and what that was."""
    if value.source is None:
        return (), "outside"
    raw = _maker(trace, value) is not None and not _whole(trace.operations[value.source], value)
    written = tuple(_outputs(trace, source) for source in _writers(trace, value))
    return written, "uninitialised" if raw else "operation"


def _writers(trace: Trace, value: Value) -> list[int | None]:
    """Every operation that wrote to a tensor's memory, the last one first; None is what was before the trace."""
    ahead, writers = [value.source], dict[int | None, None]()
    while ahead:
        source = ahead.pop()
        if source not in writers:
            writers[source] = None
            operation = None if source is None else trace.operations[source]
            ahead += [operation.inputs[place].source for place in operation.writes] if operation else []
    return list(writers)


def _maker(trace: Trace, value: Value) -> Operation | None:
    """The torch.empty or the like that made a tensor's memory, None if it was made with values in it."""
    operations = (trace.operations[source] for source in _writers(trace, value) if source is not None)
    return next((one for one in operations if one.kind == "uninitialised"), None)


def _whole(writer: Operation, value: Value) -> bool:
    """Whether the last writer wrote as many numbers as are read: then none is left uninitialised."""
    written = [prod(output.shape) for output in writer.outputs]
    return writer.kind != "uninitialised" and max(written, default=0) >= prod(value.shape)


def _found(
    reader: Operation, trials: list[int], distinct: int, writer: Operation | None, maker: Operation | None, end: End
) -> Finding:
    words = WORDS[end].format(writer=where(writer) if writer else "", maker=_anywhen(maker) if maker else "")
    return finding("uninitialised" if end == "uninitialised" else "outside", reader, trials, distinct, words)


def _anywhen(maker: Operation) -> str:
    """Where an operation stands, whatever the step: what each step makes anew is one finding."""
    places = [*([f"of {maker.module}"] if maker.module else []), *([f"at {maker.line}"] if maker.line else [])]
    return " ".join([maker.name.removesuffix(".default"), *places])
