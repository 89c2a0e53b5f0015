"""Why trials differ, in words: for the report and the terminal, from what summary.json holds."""

from typing import Any

SHOWN = 5


def why_lines(summary: dict[str, Any]) -> list[str]:
    """A line a cell that differs and was traced, then its first findings, each with what may remove it."""
    lines = [line for cell in summary["cells"] if cell.get("why") for line in _cell_lines(cell)]
    return [*lines, *accuracy_lines(summary)]


def accuracy_lines(summary: dict[str, Any]) -> list[str]:
    """How far the captured operations of each cell lie from float64."""
    return [str(one["sentence"]) for one in summary.get("accuracy", [])]


def _cell_lines(cell: dict[str, Any]) -> list[str]:
    found, label = cell["why"], cell["label"]
    lines = [f"{label}: {found['sentence']}", *(f"{label}: {finding_words(one)}" for one in found["findings"][:SHOWN])]
    if len(found["findings"]) > SHOWN:
        lines.append(f"{label}: and {len(found['findings']) - SHOWN} more, see python -m runner.why STUDY")
    lines += [f"{label}: try: {advice_words(one)}" for one in cell["advice_above"]]
    if found["first_not_finite"]:
        lines.append(f"{label}: {found['first_not_finite']['words']}")
    return lines + [f"{label}: {note}" for note in (*found["notes"], *map(left_out, found["damaged"]))]


def finding_words(found: dict[str, Any]) -> str:
    """A finding with the forms of its tensors and the advice, in one line."""
    changes = "; ".join(advice_words(one) for one in found["advice"])
    return f"{found['words']}{shapes_words(found)}{captured_words(found)}{f'; try: {changes}' if changes else ''}"


def captured_words(found: dict[str, Any]) -> str:
    """How large the difference is, where further trainings kept what the operation gave."""
    return f"; {found['captured']['words']}" if found.get("captured") else ""


def shapes_words(found: dict[str, Any], most: int = 3) -> str:
    """The forms of the tensors that went in, the first ones of many."""
    shapes = found["shapes"]
    more = f" and {len(shapes) - most} more" if len(shapes) > most else ""
    return f" [{', '.join(shapes[:most])}{more}]" if shapes else ""


def advice_words(advice: dict[str, Any]) -> str:
    """The change and what it does: "cudnn=deterministic (let cuDNN choose ...)"."""
    change = " ".join(advice["change"])
    return f"{change} ({advice['words']})" if change else str(advice["words"])


def left_out(message: str) -> str:
    """A damaged file of a probe, as the report names it."""
    return f"a trial's trace is left out: {message}"


def short_lines(summary: dict[str, Any]) -> list[str]:
    """For the terminal: a line a cell that was traced and differs, and where there is more of it."""
    found = [(cell["label"], cell["why"]["deepest"]) for cell in summary["cells"] if cell.get("why")]
    lines = [f"{label}: {deepest}" for label, deepest in found if deepest]
    return [*lines, "why, and what to try: python -m runner.why STUDY"] if lines else []


def change_lines(summary: dict[str, Any]) -> list[str]:
    """What each change of settings within the study did to repeatability, and what it cost."""
    return [str(change["words"]) for change in summary.get("changes", [])]


def kernel_lines(summary: dict[str, Any]) -> list[str]:
    """The kernels that trials of a cell chose differently, and what changes from one mode to another."""
    cells = [(cell["label"], words) for cell in summary["cells"] for words in cell_kernel_words(cell)]
    changes = [(" to ".join(one["labels"]), words) for one in summary["kernel_changes"] for words in one["words"]]
    return [f"{label}: {words}" for label, words in (*cells, *changes)]


def cell_kernel_words(cell: dict[str, Any]) -> list[str]:
    """What is said of a cell's kernels."""
    found = cell["kernels"]
    return [*found["words"], *map(left_out, found["damaged"])] if found else []
