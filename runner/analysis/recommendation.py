"""Which mode for what, among the cells of a study that differ in nothing but the mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.analysis.divergence import Divergence
from runner.analysis.ratio import Ratio

QUESTIONS = ("fastest", "reproducible", "balanced")
LEAST_TRIALS = 5


@dataclass(frozen=True)
class Candidate:
    """What a recommendation looks at in one cell; `autotune_s` is 0 where no tuning was seen, `step_ms` the mean."""

    cell: str
    label: str
    ratio: Ratio
    step_ms: float | None
    autotune_s: float
    host_bound: bool
    flags_as_asked: bool
    divergence: Divergence

    @property
    def trials(self) -> int:
        """How many trials finished."""
        return self.divergence.trials

    @property
    def repeats(self) -> str | None:
        """What repeated in all of enough trials, the weights and the evaluation at least; None if it did not."""
        if self.trials < LEAST_TRIALS or not self.divergence.same_evaluation:
            return None
        return {
            "bitwise": f"bitwise, {self.trials} of {self.trials}",
            "loss-only": f"weights bitwise equal, {self.trials} of {self.trials}, the logged training loss differs",
        }.get(str(self.divergence.verdict))


def recommend(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The answers for `fastest`, `reproducible` and `balanced`: {"cell", "label", "why"} or {"undecided"}."""
    tried = [one for one in candidates if one.trials]
    if not tried:
        return _all_undecided("needs finished trials: there are none")
    if all(one.ratio.verdict == "inert" for one in tried):
        return _all_undecided("the flags cannot act here: no CUDA in use")
    other = [one.label for one in tried if not one.flags_as_asked]
    if other:
        return _all_undecided(
            f"the flags were not as asked in {', '.join(other)}: the model sets them itself, see notes"
        )
    if all(one.host_bound for one in tried):
        return _all_undecided("every step is bound by the host, so that the flags cannot matter")
    missing = [one.label for one in candidates if not one.trials]
    return {
        "fastest": _noting(_fastest(tried), missing),
        "reproducible": _noting(_reproducible(tried), missing),
        "balanced": {
            "undecided": "needs the number of plans each tuned mode draws, which this version does not tell apart"
        },
    }


def _all_undecided(what: str) -> dict[str, Any]:
    return {name: {"undecided": what} for name in QUESTIONS}


def _noting(answer: dict[str, Any], missing: list[str]) -> dict[str, Any]:
    if not missing or "undecided" in answer:
        return answer
    return answer | {"why": f"{answer['why']}; without {', '.join(missing)}, of which no trial finished"}


def _fastest(candidates: Sequence[Candidate]) -> dict[str, Any]:
    best = _least(candidates)
    return {"undecided": best} if isinstance(best, str) else _answer(best, _speed_reason(best, candidates))


def _reproducible(candidates: Sequence[Candidate]) -> dict[str, Any]:
    repeating = [one for one in candidates if one.repeats]
    if not repeating:
        return {"undecided": _none_repeats(candidates)}
    if len(repeating) == 1:
        return _answer(repeating[0], f"{repeating[0].repeats}; the only mode here that repeats")
    best = _least(repeating)
    return (
        {"undecided": best}
        if isinstance(best, str)
        else _answer(best, f"{best.repeats}; {_speed_reason(best, repeating)}")
    )


def _none_repeats(candidates: Sequence[Candidate]) -> str:
    varied = dict.fromkeys(name for one in candidates for name in one.divergence.seeds_varied)
    if varied:
        return f"needs seeds=fixed: here seeds differ by design ({', '.join(varied)})"
    if max(one.trials for one in candidates) < LEAST_TRIALS:
        return f"needs at least {LEAST_TRIALS} finished trials a cell"
    return f"needs a mode bitwise equal in all of at least {LEAST_TRIALS} trials: there is none here"


def _least(candidates: Sequence[Candidate]) -> Candidate | str:
    """The candidate with the least step time if its interval lies below every other's, else what would settle it."""
    if len(candidates) == 1:
        return "needs a second mode to compare with"
    timed = [one for one in candidates if one.ratio.value is not None and one.ratio.ci95 is not None]
    unknown = [f"{one.label} ({one.ratio.why})" for one in candidates if one not in timed]
    if unknown:
        return f"needs ratios with intervals for {', '.join(unknown)}"
    best = min(timed, key=lambda one: one.ratio.value or 0.0)
    rivals = [one for one in timed if one is not best and _low(one) <= _high(best)]
    return _tie([best, *rivals]) if rivals else best


def _low(candidate: Candidate) -> float:
    return candidate.ratio.ci95[0] if candidate.ratio.ci95 else 0.0


def _high(candidate: Candidate) -> float:
    return candidate.ratio.ci95[1] if candidate.ratio.ci95 else float("inf")


def _tie(tied: list[Candidate]) -> str:
    names = " and ".join(one.label for one in tied)
    if any(one.ratio.verdict == "undecided" for one in tied):
        return f"needs more rounds: the step times of {names} are not told apart yet"
    return f"a tie: the intervals of the step times of {names} overlap"


def _speed_reason(best: Candidate, candidates: Sequence[Candidate]) -> str:
    if best.ratio.baseline or best.ratio.value is None:
        return "least step time; the baseline itself"
    return f"least step time, {best.ratio.value:.3f} of the default's{_payback(best, candidates)}"


def _payback(best: Candidate, candidates: Sequence[Candidate]) -> str:
    """After how many steps the best one's tuning is paid for, beside all others that answer and tune less."""
    costs = [
        (1000 * (best.autotune_s - one.autotune_s) / (one.step_ms - best.step_ms), one.label)
        for one in candidates
        if best.step_ms and one.step_ms and one.autotune_s < best.autotune_s
    ]
    if not costs:
        return ""
    steps, rival = max(costs)
    return f"; its tuning pays back after {steps:.0f} steps beside {rival}"


def _answer(candidate: Candidate, why: str) -> dict[str, Any]:
    return {"cell": candidate.cell, "label": candidate.label, "why": why}
