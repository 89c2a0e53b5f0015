"""A recipe's published figures beside those that a study measured, each with a verdict."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from runner.analysis.figure import Interval
from runner.analysis.measured import Answer, Measured, Measurement
from runner.analysis.quantity import chosen, quantity
from runner.errors import StudyError
from runner.recipe import QUANTITIES, Published, Replication
from runner.study import Study

Agreement = Literal["agrees", "differs", "not comparable", "no target"]


def replication_of(study: Study) -> Replication | None:
    """The recipe that a study follows, None if none. Raises StudyError if what study.json has of it is damaged."""
    asked = study.asked()
    if asked.get("recipe") is None:
        return None
    try:
        return Replication.of(asked["recipe"])
    except ValueError as error:
        raise StudyError(f"{study.folder}: what was asked is damaged: {error}; restore study.json") from error


def beside(found: Replication | None, measurements: Sequence[Measurement], rounds: int | None) -> dict[str, Any] | None:
    """What summary.json holds of a recipe: what was published, what was changed, and its rows with their verdicts.

    `rounds` are those that were asked for. Fewer than the recipe's make its intervals wider and leave them comparable.
    """
    if found is None:
        return None
    fewer = rounds is not None and found.trials is not None and rounds < found.trials
    return {
        **{key: value for key, value in asdict(found.recipe).items() if key != "published"},
        "size": found.size,
        "changed": found.changed,
        "fewer_trials": f"trials={rounds} (recipe: {found.trials})" if fewer else None,
        "rows": [_row(row, found, measurements) for row in found.recipe.published],
    }


def _row(row: Published, found: Replication, measurements: Sequence[Measurement]) -> dict[str, Any]:
    answer = quantity(row, measurements)
    verdict, why = _judged(row, answer, _reason(row, answer, found, measurements))
    figure = answer if isinstance(answer, Measured) else None
    return {
        **asdict(row),
        "measured": figure.value if figure else None,
        "ci95": figure.ci95 if figure else None,
        "bootstrap_se": figure.bootstrap_se if figure else None,
        "note": figure.note if figure else None,
        "measured_trials": figure.trials if figure else None,
        "verdict": verdict,
        "why": why,
    }


def _reason(row: Published, answer: Answer, found: Replication, measurements: Sequence[Measurement]) -> str | None:
    """Why nothing can be said about the published value, whatever was measured: all that apply; None if none does.

    Of several, such as other data and fewer epochs, one alone would read as if the rest were the published protocol.
    """
    if not isinstance(answer, Measured):
        return answer
    quantity = QUANTITIES[row.quantity]
    reasons = [f"no longer the published protocol: {'; '.join(found.changed)}"] if found.changed else []
    if not row.sizes:
        reasons.append("too little is known of what was measured there to do the same")
    elif found.size not in row.sizes:
        sizes = ", ".join(row.sizes)
        reasons.append(f"recipe_size={found.size} is another protocol than that of this figure ({sizes})")
    if quantity.needs_cuda and _without_cuda(row, measurements):
        reasons.append("no CUDA in use: the flags cannot act here")
    if answer.trials < quantity.least_trials:
        reasons.append(f"it takes {quantity.least_trials} trials, here are {answer.trials}")
    return "; ".join(reasons) or None


def _without_cuda(row: Published, measurements: Sequence[Measurement]) -> bool:
    found = (one for words in (row.cell, row.over) for one in chosen(measurements, words))
    return any(one.sample.cuda is False for one in found)


def _judged(row: Published, answer: Answer, reason: str | None) -> tuple[Agreement, str | None]:
    if not row.read:
        return "no target", "not read: no figure"
    if reason is not None or not isinstance(answer, Measured):
        return "not comparable", reason
    if isinstance(answer.value, str):
        return _judged_words(str(row.value), answer.value, QUANTITIES[row.quantity].words)
    if answer.ci95 is None:
        return "not comparable", "what was measured has no interval"
    if not _overlap(published_range(row), answer.ci95):
        return "differs", None
    if _too_wide(row, answer.ci95):
        return "not comparable", "what was measured may be no effect as well: it takes more trials to tell"
    return "agrees", None


def _too_wide(row: Published, ci95: Interval) -> bool:
    """Whether an interval also holds "no effect", which the source denies: meeting both, it agrees with neither."""
    nothing = QUANTITIES[row.quantity].no_effect
    return nothing is not None and _holds(ci95, nothing) and not _holds(published_range(row), nothing)


def _judged_words(published: str, measured: str, words: Sequence[str]) -> tuple[Agreement, str | None]:
    tied = measured.split(" or ")
    if not set(tied) <= set(words):
        return "not comparable", f"what was measured is {measured}"
    if published not in tied:
        return "differs", None
    return ("agrees", None) if len(tied) == 1 else ("not comparable", f"not told apart: {measured}")


def published_range(row: Published) -> Interval:
    """What the source says that its figure may be: its range, or the value with its uncertainty."""
    low, high = row.value if isinstance(row.value, list) else (row.value, row.value)
    uncertainty = row.uncertainty or 0.0
    return low - uncertainty, high + uncertainty


def _holds(interval: Interval, value: float) -> bool:
    return interval[0] <= value <= interval[1]


def _overlap(first: Interval, second: Interval) -> bool:
    return first[0] <= second[1] and second[0] <= first[1]
