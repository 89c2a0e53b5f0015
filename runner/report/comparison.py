"""A comparison in words: the likely cause first, and short."""

from collections.abc import Iterator, Sequence

from runner.analysis.causes import WEAK, Cause
from runner.analysis.comparison import Comparison, Pair
from runner.analysis.divergence import SUBJECTS
from runner.analysis.parting import Parting
from runner.analysis.ratio import Ratio
from runner.analysis.words import ratio_end
from runner.report.text import one_line

MOST_LINES = 15
SHOWN = 3
SIDES = ("A", "B")
IN_SIDES = ("in A", "in B")


def comparison_lines(found: Comparison, everything: bool = False) -> list[str]:
    """The answer line by line, at most MOST_LINES unless `everything` is asked for."""
    most = len(found.pairs) if everything else SHOWN
    lines = list(map(one_line, _lines(found, most, everything)))
    if everything or len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 1], f"and {len(lines) - MOST_LINES + 1} more lines: --all"]


def nothing_words(found: Comparison) -> str:
    """Why no two cells could be compared."""
    why = [*unpaired_lines(found, IN_SIDES), *_notes(found, everything=False)]
    return "; ".join([f"nothing to compare: {_sides(found)}: {_counts(found)}", *why])


def _lines(found: Comparison, most: int, everything: bool) -> Iterator[str]:
    yield f"{_sides(found)}: {_counts(found)}"
    for pairs in by_cause(found.of("differs")):
        yield from cause_lines(pairs, IN_SIDES, SIDES, everything)
        yield from (f"- {differing_line(pair, SIDES)}" for pair in pairs[:most])
        yield from _more(pairs, most)
    yield from _unsteady(found, most)
    same = found.of("same")
    yield from _without_effect(same)
    if everything:
        yield from (f"same: {_same(pair)}" for pair in same)
    elif same:
        yield f"same: {_listed(list(map(_same, same)))}"
    yield from unpaired_lines(found, IN_SIDES)
    yield from _notes(found, everything)


def _sides(found: Comparison) -> str:
    return "; ".join(f"{name} is {side.name}" for name, side in zip(SIDES, found.sides, strict=True))


def _counts(found: Comparison) -> str:
    same, pairs = len(found.of("same")), len(found.pairs)
    if not pairs:
        return "no cell of one has a counterpart in the other"
    return f"{same} of {pairs} {'cell is' if pairs == 1 else 'cells are'} bitwise the same"


def _same(pair: Pair) -> str:
    different = len(pair.before.bits)
    unsteady = f" (does not repeat, the same {different} different trainings on both sides)" if different > 1 else ""
    return f"{pair.label}{unsteady}{_speed(pair, SIDES)}"


def by_cause(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs by what most likely parts them: those with the same changes together, in the order of the first."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(repr([cause.words(IN_SIDES) for cause in pair.causes]), []).append(pair)
    return list(groups.values())


def cause_lines(
    pairs: Sequence[Pair], where: tuple[str, str], names: tuple[str, str], everything: bool = False
) -> Iterator[str]:
    """What most likely parts these cells, which have their changes in common; `where` are the sides in words."""
    pair = pairs[0]
    first, *others = [cause.words(where) for cause in pair.causes] or ["nothing that is recorded changed"]
    yield f"likely cause: {first}" if pair.causes else first
    if others:
        shown = others if everything else others[:SHOWN]
        more = f"; and {len(others) - len(shown)} more" if len(others) > len(shown) else ""
        yield f"also changed: {'; '.join(shown)}{more}"
    for index in pair.unsteady_sides:
        yield f"besides, {_does_not_repeat(pair, index, names)}"
    yield from (f"other kernels: {words}" for words in (pair.kernels if everything else pair.kernels[:1]))
    if pair.operation:
        yield f"first operation with other bits: {pair.operation}"
    elif not pair.causes or pair.causes[0].name in WEAK:
        yield f"to find the operation, trace it on both sides and compare these two studies: {pair.deeper}"


def _does_not_repeat(pair: Pair, index: int, names: tuple[str, str]) -> str:
    cell = (pair.before, pair.after)[index]
    return f"it does not repeat {_in(names[index])} itself, {len(cell.bits)} different of {cell.processes}"


def _in(name: str) -> str:
    return name if name == "here" else f"in {name}"


def differing_line(pair: Pair, names: tuple[str, str]) -> str:
    """A pair that differs: from which step what does, and what a step takes."""
    return f"{pair.label}: {_parting_words(pair.parted, str(pair.after.config.get('phase')))}{_speed(pair, names)}"


def _parting_words(parted: Parting, phase: str) -> str:
    """From which step what differs: "differs from step 2: losses from step 2, evaluation; the same: data"."""
    assert parted.first is not None
    step = parted.first[0]
    if step == 0:
        start = "differs from the start"
    elif step > parted.steps:
        start = (
            "differs in the evaluation" if parted.evaluation and parted.data_step is None else "goes on for more steps"
        )
    else:
        start = f"differs from step {step}"
    told = _rungs(parted, SUBJECTS.get(phase, "weights"), phase != "attach")
    differ, same = ([words for words, differs in told if differs is which] for which in (True, False))
    equal = f"; the same: {', '.join(same)}" if same else ""
    return f"{start}: {', '.join(differ)}{equal}"


def _rungs(parted: Parting, subject: str, evaluated: bool) -> list[tuple[str, bool]]:
    """Each rung in words, and whether it differs; of an attached script no evaluation is seen."""
    checkpoint = f"{subject} after step {parted.differ_after}"
    if parted.equal_after is not None:
        checkpoint += f" (equal after step {parted.equal_after})"
    return [
        ("initial weights", parted.initial),
        _series("data", parted.data_step, parted),
        _series("losses", parted.loss_step, parted),
        (checkpoint if parted.differ_after is not None else subject, parted.differ_after is not None),
        *([("evaluation", parted.evaluation)] if evaluated else []),
    ]


def _series(name: str, step: int | None, parted: Parting) -> tuple[str, bool]:
    """Data or losses in words; that one training goes on is no difference where something differs before."""
    if step is None:
        return name, False
    if step > parted.steps and parted.within:
        return f"{name} of the {parted.steps} steps of both", False
    return f"{name} from step {step}", True


def _speed(pair: Pair, names: tuple[str, str]) -> str:
    """What a step takes on the second side, of what it takes on the first."""
    ratio: Ratio | None = pair.ratio
    if ratio is None or ratio.value is None:
        return ""
    interval = f" [{', '.join(map(ratio_end, ratio.ci95))}]" if ratio.ci95 else ""
    return f"; step time {names[1]}/{names[0]} {ratio.value:.3f}{interval} unpaired"


def _unsteady(found: Comparison, most: int) -> Iterator[str]:
    """Cells that do not repeat themselves: no change is needed for them to differ."""
    pairs = found.of("unsteady")
    if not pairs:
        return
    yield "these do not repeat by themselves, so that nothing need have changed (`python -m runner.why` says why):"
    for pair in pairs[:most]:
        counts = [
            f"{len(cell.bits)} different of {cell.processes} {where}"
            for cell, where in zip((pair.before, pair.after), IN_SIDES, strict=True)
        ]
        yield f"- {pair.label}: {', '.join(counts)}{_speed(pair, SIDES)}"
    yield from _more(pairs, most)


def _without_effect(pairs: Sequence[Pair]) -> Iterator[str]:
    """What changed in cells that are the same all the same."""
    if not pairs:
        return
    changed: dict[str, Cause] = {cause.words(IN_SIDES): cause for pair in pairs for cause in pair.causes}
    if changed:
        yield f"changed without effect on these bits: {'; '.join(changed)}"
    else:
        yield "settings and environment are the same"


def unpaired_lines(found: Comparison, where: tuple[str, str]) -> Iterator[str]:
    """The cells that have no counterpart, or several."""
    for labels, place in zip(found.alone, where, strict=True):
        if labels:
            yield f"only {place}: {_listed(labels)}"
    for labels, place in zip(found.ambiguous, where, strict=True):
        if labels:
            yield f"not compared, several cells fit as well, {place}: {_listed(labels)}"


def _notes(found: Comparison, everything: bool) -> Iterator[str]:
    """What of a side is missing, that which counts against it first."""
    of = [(notes, name) for side, name in zip(found.sides, SIDES, strict=True) for notes in (side.lost, side.notes)]
    for notes, name in of:
        shown = notes if everything else notes[:1]
        yield from (f"note on {name}: {note}" for note in shown)
        if len(notes) > len(shown):
            yield f"note on {name}: and {len(notes) - len(shown)} more of the kind"


def _more(pairs: Sequence[Pair], most: int) -> Iterator[str]:
    if len(pairs) > most:
        yield f"- and {len(pairs) - most} more cells: --all"


def _listed(labels: Sequence[str]) -> str:
    return " | ".join(labels)
