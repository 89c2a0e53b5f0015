"""Words that analysis and reports share. Light to import: whatever prints a report does."""

from typing import Any


def percent(share: float) -> str:
    """A share as a percentage to two significant digits: 0.197 -> "20 %", 0.0152 -> "1.5 %", 0.02 -> "2 %"."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) > 99 else f"{value:.2g} %"


def ratio_end(ratio: float) -> str:
    """An end of a ratio's interval: beyond 0.01 and 100 the figures tell nothing."""
    return "below 0.01" if ratio < 0.01 else "above 100" if ratio > 100 else f"{ratio:.3f}"


ON_PURPOSE = "each trial was changed on purpose"


def only_steps(found: dict[str, Any]) -> bool:
    """Whether trials took different numbers of steps, and nothing else that was seen of them differs."""
    parts = ("first_data_step", "first_loss_step", "weights_differ_after")
    alike = found.get("same_start") and all(found.get(part) is None for part in parts)
    return found.get("fewest_steps") is not None and bool(alike)


def steps_words(fewest: int) -> str:
    """That trials took different numbers of steps."""
    return f"different numbers of steps: compared in the first {fewest}"


def across_words(found: dict[str, Any]) -> str:
    """The verdict across processes of a cell's reproducibility, never "bitwise" without n of n."""
    n, subject = found["trials"], found.get("subject", "weights")
    if found["verdict"] == "differs" and only_steps(found):
        return f"{steps_words(found['fewest_steps'])}, equal in {n} of {n}"
    purpose = f" ({ON_PURPOSE})" if found.get("poked") else ""
    loss = "logged training loss" if subject == "weights" else "logged loss"
    return {
        "bitwise": f"bitwise, {n} of {n}",
        "metric-only": f"{subject} bitwise equal, evaluation metrics differ ({subject} equal in {n} of {n})",
        "loss-only": f"{subject} bitwise equal, the {loss} differs ({subject} equal in {n} of {n})",
        "differs": f"{subject} differ, {found['unique_weights']} different of {n}{purpose}",
        "single": "one trial, nothing to compare",
        None: "no finished trial",
    }[found["verdict"]]


def plan_words(steps: int, runs: int, phase: str) -> str:
    """What is to be done: "one training of 10,000 steps", "500 trainings of 300 steps"."""
    many = runs > 1
    if phase == "infer":
        subject = f"{runs:,} processes that answer" if many else "one process that answers"
        return f"{subject} {steps:,} batch{'es' if steps > 1 else ''}"
    if phase == "calls":
        subject = f"{runs:,} processes that call" if many else "one process that calls"
        return f"{subject} {steps:,} time{'s' if steps > 1 else ''}"
    subject = f"{runs:,} trainings" if many else "one training"
    return f"{subject} of {steps:,} step{'s' if steps > 1 else ''}"
