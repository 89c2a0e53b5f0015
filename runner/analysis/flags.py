"""What came of a cell's flags: those read back as something else, and the operations that strict mode spoke of."""

from collections import Counter
from collections.abc import Sequence

from runner.record import Record


def flag_mismatches(records: Sequence[Record]) -> list[str]:
    """A sentence for each flag that was read back with another value than requested, with its trials."""
    found: dict[str, list[int]] = {}
    for record in records:
        for sentence in _mismatches(record):
            found.setdefault(sentence, []).append(record.number)
    return [f"{sentence} (trial {', '.join(map(str, numbers))})" for sentence, numbers in found.items()]


def _mismatches(record: Record) -> list[str]:
    requested = record.flags.get("requested", {})
    found = []
    for when in ("before", "after"):
        seen = record.flags.get(when) or {}
        for name in sorted(requested.keys() & seen.keys()):
            if seen[name] != requested[name]:
                found.append(f"{name} was requested as {requested[name]}, read back as {seen[name]} {when} training")
    return found


def not_deterministic(records: Sequence[Record]) -> dict[str, int]:
    """The operations that PyTorch refused or warned of in strict mode, each with the number of trials, most first."""
    found = Counter(name for record in records for name in record.not_deterministic)
    return dict(found.most_common())
