"""Compare the traces of a cell's trials: what was done on equal inputs and gave other bits, and why else they part."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from runner.analysis.finding import Finding, Repeats, finding, merged, shape_words, where
from runner.analysis.not_finite import first_not_finite
from runner.analysis.origins import origins, start_readers
from runner.analysis.rows import UNKNOWN, Row, aligned, differing, digests, groups, numbered, tensors_read
from runner.operation import Operation
from runner.trace import Trace

# These hand a tensor's value to Python, from where it may come back as a scalar.
TO_PYTHON = ("aten._local_scalar_dense", "aten.equal", "aten.is_nonzero", "aten.allclose")


START_READERS = 3


@dataclass(frozen=True)
class Compared:
    """What the traces of several trials say together.

    `operations` counts those that were compared: all trials did them alike. Where that ended too early the last finding
    says so. `first_not_finite` is the operation that made the first NaN, or infinity, if that was asked.
    `start_readers` are the operations that first read initial weights which differ, in words, the first few modules'.
    """

    level: str
    trials: int
    operations: int
    findings: list[Finding]
    first_not_finite: Finding | None
    start_readers: list[str] = field(default_factory=list)


def compare(
    traces: Sequence[Trace], same_start: bool = True, data_step: int | None = None, not_finite: bool = False
) -> Compared:
    """Compare the traces of trials of one cell, from the start up to where they do another thing.

    `same_start` says that the initial weights are equal, `data_step` from which step (from 1) the data are not: what
    comes then is not compared. `not_finite` asks for the maker of the first NaN or infinity. Raises ValueError for
    traces of several cells or levels, and for two of one trial.
    """
    _check(traces)
    numbers = [trace.number for trace in traces]
    rows = aligned(traces)
    told = list(takewhile(lambda row: data_step is None or row[0].step < data_step, rows))
    found = differing(told)
    findings = [
        *computed(found, numbers),
        *drawn(found, numbers),
        *scalars(found, numbers),
        *origins(found, traces, same_start),
    ]
    path = _parting(traces, len(rows)) if len(told) == len(rows) else None
    return Compared(
        level=traces[0].level if traces else "ops",
        trials=len(traces),
        operations=len(told),
        findings=merged([*findings, *([path] if path else [])]),
        first_not_finite=first_not_finite(traces) if not_finite else None,
        start_readers=[] if same_start else start_readers(found)[:START_READERS],
    )


def _check(traces: Sequence[Trace]) -> None:
    for trace in traces:
        for name in ("cell", "level"):
            first, other = getattr(traces[0], name), getattr(trace, name)
            if first != other:
                whose = f"trial {traces[0].number} is of {name} {first}, trial {trace.number} of {other}"
                raise ValueError(f"traces of one cell and level can be compared: {whose}")
    if len({trace.number for trace in traces}) < len(traces):
        raise ValueError(f"two traces are of one trial: {', '.join(str(trace.number) for trace in traces)}")


def computed(rows: Sequence[Row], numbers: list[int]) -> Iterator[Finding]:
    """Operations that gave several results on equal inputs, in several trials or when repeated in one."""
    for row in rows:
        if row[0].kind not in ("computed", "random"):
            continue
        inputs = [(tensors_read(one), one.scalars, one.random) for one in row]
        given = [tuple(digests(one.outputs)) for one in row]
        parted = [alike for alike in groups(inputs) if UNKNOWN not in inputs[alike[0]][0]]
        parted = [alike for alike in parted if len({given[one] for one in alike}) > 1]
        unsteady = [place for place, one in enumerate(row) if one.repeated is not None and not one.repeated.equal]
        members = {place for alike in parted for place in alike} or set(unsteady)
        if members:
            distinct = max((len({given[one] for one in alike}) for alike in parted), default=1)
            found = finding("operation", row[0], [numbers[place] for place in members], distinct)
            yield _repeated(found, row)


def _repeated(found: Finding, row: Row) -> Finding:
    """The finding with what came of repeating the operation."""
    repeated = [one.repeated for one in row if one.repeated is not None]
    if not repeated:
        return found
    steady = all(one.equal for one in repeated)
    repeats: Repeats = "differs between processes" if steady else "differs when repeated"
    return replace(
        found,
        repeats=repeats,
        max_ulp=max((one.max_ulp for one in repeated if one.max_ulp), default=None),
        max_relative=max((one.max_relative for one in repeated if one.max_relative), default=None),
    )


def drawn(rows: Sequence[Row], numbers: list[int]) -> Iterator[Finding]:
    """Random operations on equal inputs that found another state of the generator, after equal draws.

    `past` numbers what the draws of each trial were so far: a draw on other inputs may take more of the generator.
    """
    past = [0] * len(numbers)
    for row in rows:
        if all(one.kind != "random" for one in row):
            continue
        inputs = [(before, tensors_read(one), one.scalars) for before, one in zip(past, row, strict=True)]
        for alike in groups(inputs):
            states = {row[one].random for one in alike}
            if len(states) > 1:
                words = "draws from another state of the random generator, though all that was drawn before is equal"
                yield finding("random", row[0], [numbers[one] for one in alike], len(states), words)
        past = numbered([(key, one.random) for key, one in zip(inputs, row, strict=True)])


def scalars(rows: Sequence[Row], numbers: list[int]) -> Iterator[Finding]:
    """Operations on equal tensors with another number among their arguments: Python had it from outside ATen.

    `past` numbers what each trial handed to Python so far: numbers that followed from that are explained by it.
    """
    past = [0] * len(numbers)
    for row in rows:
        inputs = [(before, tensors_read(one)) for before, one in zip(past, row, strict=True)]
        for alike in groups(inputs):
            said = list(dict.fromkeys(row[one].scalars for one in alike))
            if len(said) > 1:
                yield finding("scalar", row[0], [numbers[one] for one in alike], len(said), _scalar_words(said))
        if row[0].name.startswith(TO_PYTHON):
            past = numbered(inputs)


def _scalar_words(said: list[str]) -> str:
    """Which numbers: the first argument that differs, as two of the trials have it."""
    first, second = (re.split(r"[\s,()\[\]{}]+", text) for text in said[:2])
    pairs = ((one, other) for one, other in zip(first, second, strict=False) if one != other)
    here, there = next(pairs, ("more", "fewer"))
    return f"gets another number from outside ATen ({here} or {there}), with equal tensors"


def _parting(traces: Sequence[Trace], common: int) -> Finding | None:
    """Where trials do another thing, or end earlier than others within a step."""
    longest = max((len(trace.operations) for trace in traces), default=0)
    if common == longest or _fewer_steps(traces, common):
        return None
    ahead = [(trace.number, trace.operations[common : common + 1]) for trace in traces]
    places = [one[0].place if one else None for _, one in ahead]
    here = next(place for place, one in enumerate(places) if one is not None)
    there = next(place for place, one in enumerate(places) if one != places[here])
    words = f"{_does(*ahead[there])} where {_does(*ahead[here])}"
    if ahead[there][1] and where(ahead[there][1][0]) == where(ahead[here][1][0]):
        words += f", with {_unlike(ahead[there][1][0], ahead[here][1][0])}"
    words += f": compared up to operation {common} of {longest}"
    return finding("path", ahead[here][1][0], [trace.number for trace in traces], len(set(places)), words)


def _fewer_steps(traces: Sequence[Trace], common: int) -> bool:
    """Whether those that end here took fewer steps, and the others go on with the next one: all that was seen."""
    ended = max((trace.steps for trace in traces if len(trace.operations) == common), default=0)
    ahead = [trace.operations[common] for trace in traces if len(trace.operations) > common]
    return ended > 0 and all(one.step > ended for one in ahead)


def _unlike(one: Operation, other: Operation) -> str:
    """What is not the same of two operations of one name at one place."""
    if one.scalars != other.scalars:
        return f"the arguments {one.scalars or 'none'} and {other.scalars or 'none'}"
    forms = [
        ", ".join(shape_words(value.shape, value.dtype) for value in (*each.inputs, *each.outputs))
        for each in (one, other)
    ]
    return f"the tensors {forms[0]} and {forms[1]}"


def _does(number: int, ahead: tuple[Operation, ...]) -> str:
    return f"trial {number} {'does ' + where(ahead[0]) if ahead else 'ends'}"
