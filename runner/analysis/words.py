"""Words that analysis and reports share. Light to import: whatever prints a report does."""


def percent(share: float) -> str:
    """A share as a percentage to two significant digits: 0.197 -> "20 %", 0.0152 -> "1.5 %", 0.02 -> "2 %"."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) > 99 else f"{value:.2g} %"


def plan_words(steps: int, runs: int, phase: str) -> str:
    """What is to be done: "one training of 10,000 steps", "500 trainings of 300 steps"."""
    many = runs > 1
    if phase == "infer":
        subject = f"{runs:,} processes that answer" if many else "one process that answers"
        return f"{subject} {steps:,} batch{'es' if steps > 1 else ''}"
    subject = f"{runs:,} trainings" if many else "one training"
    return f"{subject} of {steps:,} step{'s' if steps > 1 else ''}"
