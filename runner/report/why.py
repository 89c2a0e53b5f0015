"""Why trials differ, in words: for the report and the terminal, from what summary.json holds."""

import shlex
from typing import Any

SHOWN = 5
SHAPES = 3
THIS = "STUDY, with the folder of this report for STUDY"


def why_lines(summary: dict[str, Any]) -> list[str]:
    """For each cell that differs and was traced its first findings, each with what may remove it."""
    lines = [line for cell in summary["cells"] if cell["traces"] for line in _cell_lines(cell)]
    return [*lines, *accuracy_lines(summary)]


def accuracy_lines(summary: dict[str, Any]) -> list[str]:
    """How far the captured operations of each cell lie from float64."""
    return [str(one["sentence"]) for one in summary.get("accuracy", [])]


def _cell_lines(cell: dict[str, Any]) -> list[str]:
    found, label = cell["traces"], cell["label"]
    lines = [f"{label}: {finding_words(one)}" for one in found["findings"][:SHOWN]]
    if len(found["findings"]) > SHOWN:
        lines.append(f"{label}: and {len(found['findings']) - SHOWN} more, see {why_command(THIS)}")
    lines += [f"{label}: {_led(advice_words(one), one['change'])}" for one in cell["advice_above"]]
    if found["first_not_finite"]:
        lines.append(f"{label}: {found['first_not_finite']['words']}")
    return lines + [f"{label}: {note}" for note in (*found["notes"], *map(left_out, found["damaged"]))]


def finding_words(found: dict[str, Any]) -> str:
    """A finding with the forms of its tensors, the size of the difference and the advice, in one line."""
    size, shapes = size_words(found), shapes_words(found)
    parts = [f"{found['words']}{f' [{shapes}]' if shapes else ''}", *([size] if size else [])]
    return "; ".join([*parts, *(_led(advice_words(one), one["change"]) for one in found["advice"])])


def _led(words: str, change: str | None) -> str:
    return f"{lead(change)}: {words}"


def lead(change: str | None) -> str:
    """A setting can be tried; where none makes the change there is something to look at."""
    return "try" if change else "look at"


def size_words(found: dict[str, Any]) -> str:
    """How large the difference is: as further trainings kept what the operation gave, else as a repeat showed it."""
    captured = found.get("captured")
    kept = [captured["words"]] if captured else []
    return "; ".join([*kept, *([] if captured and captured["repeated"] else _repeat_words(found))])


def _repeat_words(found: dict[str, Any]) -> list[str]:
    """How far a repeat within a traced training lay off."""
    ulp, relative = found["max_ulp"], found["max_relative"]
    if not ulp:
        return [f"when repeated by up to {relative:.2g} relative"] if relative else []
    units = f"{ulp:,} {'unit' if ulp == 1 else 'units'} in the last place"
    return [f"when repeated by up to {units}{f' ({relative:.2g} relative)' if relative else ''}"]


def shapes_words(found: dict[str, Any]) -> str:
    """The forms of the tensors that went in, the first ones of many."""
    shapes = found["shapes"]
    more = f" and {len(shapes) - SHAPES} more" if len(shapes) > SHAPES else ""
    return f"{', '.join(shapes[:SHAPES])}{more}"


def advice_words(advice: dict[str, Any]) -> str:
    """The change, if a setting makes it, and what it does: "cudnn=deterministic (let cuDNN choose ...)"."""
    return f"{advice['change']} ({advice['words']})" if advice["change"] else str(advice["words"])


def left_out(message: str) -> str:
    """A damaged file of a probe, as the report names it; the message begins with its path."""
    return f"left out: {message}"


def damaged_probes(summary: dict[str, Any]) -> list[str]:
    """What is wrong with the files that probes left, of all cells."""
    probes = (cell[probe] for cell in summary["cells"] for probe in ("traces", "kernels"))
    return [message for found in probes if found for message in found["damaged"]]


def short_lines(summary: dict[str, Any], study: str | None = None) -> list[str]:
    """For terminal and report: a line a cell that was traced and differs, and where there is more of it.

    That line stands also where no probe traced a cell that differs though no seed varies; `study` is the folder, None
    in a report, which lies in it.
    """
    found = [(cell["label"], cell["traces"]["deepest"]) for cell in summary["cells"] if cell["traces"]]
    lines = [f"{label}: {deepest}" for label, deepest in found if deepest]
    if not lines and not any(_differs(cell["reproducibility"]) for cell in summary["cells"]):
        return []
    return [*lines, f"why, and what to try: {why_command(shlex.quote(study) if study else THIS)}"]


def why_command(study: str) -> str:
    """The command that says more; `study` as the shell takes it."""
    return f"python -m runner.why {study}"


def _differs(seen: dict[str, Any]) -> bool:
    """Whether trials differ that should not."""
    return seen["verdict"] not in ("bitwise", "single", None) and not (seen["seeds_varied"] or seen.get("poked"))


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
