"""Flags that were not what the cell asked for: read back in the child before and after training."""

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
    return [
        f"{name} was requested as {requested[name]}, read back as {seen[name]} {when} training"
        for when in ("before", "after")
        for seen in [record.flags.get(when) or {}]
        for name in sorted(requested.keys() & seen.keys())
        if seen[name] != requested[name]
    ]
