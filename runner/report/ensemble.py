"""What two trials would say together, in words: where logits were kept (train.keep_logits)."""

from typing import Any

from runner.report.number import number


def ensemble_words(cell: dict[str, Any]) -> list[str]:
    """The gain of two trials' mean logits and how they correlate, or why these are not compared; of equal ones none."""
    found = cell.get("ensemble")
    if not found or found["pearson"] == 1:
        return []
    if found["why"]:
        return [f"logits are not compared: {found['why']}"]
    gain = f"the accuracy of two trials' mean logits is {number(100 * found['gain'])} points above either's"
    if found["pearson"] is None:
        return [gain]
    return [f"{gain}, their logits correlate by {number(found['pearson'])} (Spearman {number(found['spearman'])})"]
