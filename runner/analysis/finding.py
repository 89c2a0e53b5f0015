"""A finding: one place where trials part although nothing before it explains why, and what it says in words."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from runner.operation import Operation, Part

Rung = Literal["operation", "random", "scalar", "outside", "uninitialised", "path"]
Repeats = Literal["differs when repeated", "differs between processes"]


@dataclass(frozen=True)
class Finding:
    """One place of a trace where trials part.

    `index` is the operation's in the trace, `shapes` what it read ("64x3x7x7 float32"), or wrote where it reads
    nothing. `trials` are those that were compared there, with `distinct` different results. `repeats` says what came of
    doing the operation again within the process, None if that was not done; `max_ulp` and `max_relative` are the
    largest differences seen so. `count` is how often the same operation was found, with the first of them told here.
    """

    rung: Rung
    step: int
    index: int
    part: Part
    name: str
    module: str
    line: str | None
    shapes: list[str]
    trials: list[int]
    distinct: int
    repeats: Repeats | None = None
    max_ulp: int | None = None
    max_relative: float | None = None
    words: str = ""
    count: int = 1


def finding(rung: Rung, operation: Operation, trials: Iterable[int], distinct: int, words: str = "") -> Finding:
    """What was found at an operation. Findings of the same operation in later steps are one, see `merged`."""
    shown = operation.inputs or operation.outputs
    return Finding(
        rung=rung,
        step=operation.step,
        index=operation.index,
        part=operation.part,
        name=operation.name,
        module=operation.module,
        line=operation.line,
        shapes=[shape_words(value.shape, value.dtype) for value in shown],
        trials=sorted(trials),
        distinct=distinct,
        words=words,
    )


def shape_words(shape: tuple[int, ...], dtype: str) -> str:
    """A tensor's form: "64x3x7x7 float32", "scalar int64"."""
    return f"{'x'.join(map(str, shape)) or 'scalar'} {dtype}"


def where(found: Operation | Finding) -> str:
    """An operation and where it stands: "aten.convolution_backward of layer4.0.conv2 (backward, step 1, net.py:31)"."""
    place = [found.part, f"step {found.step}", *([found.line] if found.line else [])]
    module = f" of {found.module}" if found.module else ""
    return f"{found.name.removesuffix('.default')}{module} ({', '.join(place)})"


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """In order of the trace, the same operation once: its first finding, with what the later ones add to it."""
    first: dict[tuple[Any, ...], Finding] = {}
    for one in sorted(findings, key=lambda found: found.index):
        key = _key(one)
        first[key] = _both(first[key], one) if key in first else one
    return [replace(one, words=_worded(one)) for one in first.values()]


def _key(one: Finding) -> tuple[Any, ...]:
    """What makes two findings one: the operation, or the cause where one shows in many operations."""
    if one.rung == "scalar":
        return one.rung, one.part, one.name, one.line
    if one.rung in ("outside", "uninitialised"):
        return one.rung, one.words
    return one.rung, one.part, one.name, one.module, one.line


def _both(first: Finding, later: Finding) -> Finding:
    return replace(
        first,
        trials=sorted({*first.trials, *later.trials}),
        distinct=max(first.distinct, later.distinct),
        repeats=max(first.repeats, later.repeats, key=_weight),
        max_ulp=_larger(first.max_ulp, later.max_ulp),
        max_relative=_larger(first.max_relative, later.max_relative),
        count=first.count + 1,
    )


def _weight(repeats: Repeats | None) -> int:
    return [None, "differs between processes", "differs when repeated"].index(repeats)


def _larger(first: Any, second: Any) -> Any:
    return max((one for one in (first, second) if one is not None), default=None)


def _worded(one: Finding) -> str:
    again = f"; {one.count} times in the steps traced" if one.count > 1 else ""
    if one.rung == "path":
        return one.words
    if one.words:
        return f"{where(one)}: {one.words}{again}"
    results = f"{one.distinct} different results of {len(one.trials)}" if one.distinct > 1 else "trials agree"
    parts = [f"equal inputs, {results}" if one.distinct > 1 else results, *([one.repeats] if one.repeats else [])]
    return f"{where(one)}: {', '.join(parts)}{again}"
