"""What the doctor says of an attached script."""

from typing import Any


def doctor_lines(summary: dict[str, Any]) -> list[str]:
    """A line for each finding, with the number of trials where not all show it."""
    there = summary["trials"]["there"]
    found = summary.get("doctor", [])
    return [one["words"] + ("" if one["trials"] == there else f" ({one['trials']} of {there} trials)") for one in found]
