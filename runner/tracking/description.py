"""What the page of a study's MLflow run says at its top: the answers, then a row for each cell."""

from typing import Any


def description(summary: dict[str, Any]) -> str:
    """The answers and a table of the cells, as Markdown."""
    answers = [f"- {name.removeprefix('recommended_')}: {text}" for name, text in recommended(summary).items()]
    head = ["| cell | trials | step, ms | times default | weights |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*answers, "", *head, *[_row(cell) for cell in summary["cells"]]])


def recommended(summary: dict[str, Any]) -> dict[str, str]:
    """The recommendation as tags: which cell and why, or what would settle it."""
    labels = {cell["cell"]: cell["label"] for cell in summary["cells"]}
    return {f"recommended_{name}": _answer(found, labels) for name, found in summary["recommendation"].items()}


def verdict(cell: dict[str, Any]) -> str:
    """The verdict on reproducibility; "bitwise" never without its count."""
    found = cell["reproducibility"]
    if found["verdict"] == "bitwise":
        return f"bitwise, {found['trials']} of {found['trials']}"
    return found["verdict"] or "unknown"


def _answer(found: dict[str, Any], labels: dict[str, str]) -> str:
    if "cell" not in found:
        return f"undecided: {found['undecided']}"
    return f"{labels.get(found['cell'], found['cell'])}: {found['why']}"


def _row(cell: dict[str, Any]) -> str:
    step, ratio = cell["speed"]["step_ms"] or {}, cell["speed"]["ratio_to_baseline"]
    figures = _interval(step.get("mean"), step.get("ci95")), _interval(ratio["value"], ratio["ci95"])
    label = cell["label"].replace("|", "\\|")
    trials = cell["n"] + cell["failed"] + cell["diverged"]
    return f"| {label} | {cell['n']} of {trials} finished | {figures[0]} | {figures[1]} | {verdict(cell)} |"


def _interval(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" + (f" ({ends[0]:.4g} to {ends[1]:.4g})" if ends else "")
