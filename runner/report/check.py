"""What came of checking a certificate, in words: that it holds, or from where it differs and why most likely."""

from collections.abc import Iterator

from runner.analysis.comparison import Comparison
from runner.analysis.statement import held_words
from runner.report.comparison import by_cause, cause_lines, differing_line, unpaired_lines
from runner.report.text import one_line

IN_SIDES = ("in the certificate", "here")
SIDES = ("certificate", "here")


def check_lines(found: Comparison) -> list[str]:
    """The answer line by line; the first side is the certificate, the second what was measured."""
    return list(map(one_line, _lines(found)))


def _lines(found: Comparison) -> Iterator[str]:
    for pairs in by_cause([*found.of("differs"), *found.of("unsteady")]):
        yield from (f"differs: {differing_line(pair, SIDES)}" for pair in pairs)
        yield from cause_lines(pairs, IN_SIDES, SIDES)
    yield from (held_words(pair.after) for pair in found.of("same"))
    yield from unpaired_lines(found, IN_SIDES)
    yield from (f"note: {note}" for note in (*found.sides[1].lost, *found.sides[1].notes))
