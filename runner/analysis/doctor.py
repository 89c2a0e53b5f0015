"""What phase=attach saw of the script beside what every training shows: the doctor's findings, and the gradients."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from runner.record import Record


def findings(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The findings in order of first appearance: {"words", "trials"}, the number of trials that show it."""
    counts = Counter(words for record in records for words in record.doctor)
    return [{"words": words, "trials": trials} for words, trials in counts.items()]


def gradients_differ_in(records: Sequence[Record]) -> int | None:
    """The first of steps 1, 2, 4, 8, ... in which the gradients of these trials differ, None if they do in none.

    Steps that not all of them took cannot be compared.
    """
    steps = sorted(set.intersection(*(set(map(int, record.gradients)) for record in records))) if records else []
    return next((step for step in steps if len({record.gradients[str(step)] for record in records}) > 1), None)
