"""Which mode for what, among the cells of a study that differ in nothing but the mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.analysis.ratio import Ratio

LEAST_TRIALS = 5


@dataclass(frozen=True)
class Candidate:
    """What a recommendation looks at in one cell."""

    cell: str
    label: str
    ratio: Ratio
    break_even_steps: float | str | None
    bitwise: bool
    trials: int


def recommend(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The answers for `fastest`, `reproducible` and `balanced`: {"cell", "label", "why"} or {"undecided"}."""
    tried = [one for one in candidates if one.trials]
    if not tried:
        return _all_undecided("needs finished trials: there are none")
    if all(one.ratio.verdict == "inert" for one in tried):
        return _all_undecided("the flags cannot act here: no CUDA in use")
    missing = [one.label for one in candidates if not one.trials]
    return {
        "fastest": _noting(_least(tried), missing),
        "reproducible": _noting(_reproducible(tried), missing),
        "balanced": {
            "undecided": "needs the number of plans each tuned mode draws, which this version does not tell apart"
        },
    }


def _all_undecided(what: str) -> dict[str, Any]:
    return {name: {"undecided": what} for name in ("fastest", "reproducible", "balanced")}


def _noting(answer: dict[str, Any], missing: list[str]) -> dict[str, Any]:
    if not missing or "undecided" in answer:
        return answer
    return answer | {"why": f"{answer['why']}; without {', '.join(missing)}, of which no trial finished"}


def _reproducible(candidates: Sequence[Candidate]) -> dict[str, Any]:
    repeating = [one for one in candidates if one.bitwise and one.trials >= LEAST_TRIALS]
    if len(repeating) == 1:
        only = repeating[0]
        return _answer(only, f"bitwise, {only.trials} of {only.trials}; the only mode here that repeats bitwise")
    if repeating:
        answer = _least(repeating)
        return answer if "undecided" in answer else answer | {"why": f"bitwise in all trials; {answer['why']}"}
    if max(one.trials for one in candidates) < LEAST_TRIALS:
        return {"undecided": f"needs at least {LEAST_TRIALS} finished trials a cell"}
    return {"undecided": f"needs a mode bitwise equal in all of at least {LEAST_TRIALS} trials: there is none here"}


def _least(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The candidate with the least step time, if its interval lies below every other's; ties are said."""
    if len(candidates) == 1:
        return {"undecided": "needs a second mode to compare with"}
    timed = [one for one in candidates if one.ratio.value is not None and one.ratio.ci95 is not None]
    unknown = [f"{one.label} ({one.ratio.why})" for one in candidates if one not in timed]
    if unknown:
        return {"undecided": f"needs ratios with intervals for {', '.join(unknown)}"}
    best = min(timed, key=lambda one: one.ratio.value or 0.0)
    rivals = [one for one in timed if one is not best and _low(one) <= _high(best)]
    if rivals:
        return {"undecided": _tie([best, *rivals])}
    return _answer(best, _speed_reason(best))


def _low(candidate: Candidate) -> float:
    return candidate.ratio.ci95[0] if candidate.ratio.ci95 else 0.0


def _high(candidate: Candidate) -> float:
    return candidate.ratio.ci95[1] if candidate.ratio.ci95 else float("inf")


def _tie(tied: list[Candidate]) -> str:
    names = " and ".join(one.label for one in tied)
    if any(one.ratio.verdict == "undecided" for one in tied):
        return f"needs more rounds: the step times of {names} are not told apart yet"
    return f"a tie: the intervals of the step times of {names} overlap"


def _speed_reason(best: Candidate) -> str:
    if best.ratio.baseline or best.ratio.value is None:
        return "least step time; the baseline itself"
    reason = f"least step time, {best.ratio.value:.3f} of the default's"
    if isinstance(best.break_even_steps, float):
        reason += f"; its tuning pays back after {best.break_even_steps:.0f} steps"
    return reason


def _answer(candidate: Candidate, why: str) -> dict[str, Any]:
    return {"cell": candidate.cell, "label": candidate.label, "why": why}
