"""Which mode for what, among the cells of a study that differ in nothing but the mode."""

from collections.abc import Sequence
from typing import Any

from runner.analysis.candidate import LEAST_TRIALS, Candidate, Terms
from runner.analysis.contention import PROBED, throttled
from runner.analysis.looks import Looks
from runner.analysis.reason import drawn, more_rounds, payback, priced, tie, time_needed
from runner.analysis.words import ON_PURPOSE
from runner.plan import Plan

QUESTIONS = ("fastest", "reproducible", "balanced")


def recommend(candidates: Sequence[Candidate], plan: Plan, looks: Looks) -> dict[str, Any]:
    """The answers for `fastest`, `reproducible` and `balanced`.

    Each is {"undecided": what would settle it} or {"cell", "label", "why", "expected_s", "cost", "energy_j"}, the last
    three for all trainings of the plan together: seconds, money in the price's currency, joules; None if not known.
    """
    tried = [one for one in candidates if one.trials]
    if not tried:
        return _all_undecided("needs finished trials: there are none")
    if all(one.speed.ratio_to_baseline.verdict == "inert" for one in tried):
        return _all_undecided("without CUDA the flags cannot act: leave them as they are, or measure on a GPU")
    other = [one.label for one in tried if not one.flags_as_asked]
    if other:
        return _all_undecided(
            f"the flags were not as asked in {', '.join(other)}: the model sets them itself, see notes"
        )
    ranked = _ranked(tried)
    terms, without = Terms(plan, looks, ranked), [one for one in candidates if one not in ranked]
    if all(one.step_ms is None for one in tried):
        asks = {"undecided": ": ".join(_unmeasured(tried))}
        return {"fastest": asks, "reproducible": _repeating(tried, terms), "balanced": asks}
    if all(one.speed.host_bound for one in ranked):
        return _all_undecided("every step is bound by the host, so that the flags cannot matter")
    return {
        "fastest": _noting(_fastest(terms), without),
        "reproducible": _noting(_reproducible(tried, terms), without),
        "balanced": _noting(_balanced(terms), without),
    }


def _ranked(tried: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those with a speed that counts, if there are two to compare: what was seen of the device left out the others."""
    counted = [one for one in tried if one.counted]
    return counted if len(counted) > 1 else tried


def _unmeasured(tried: Sequence[Candidate]) -> tuple[str, str]:
    """Why none of these has a steady step time that counts, and how to get one."""
    if tried[0].sample.probed:  # as all are: the probe is part of what cells that are compared have in common
        return PROBED, "ask again with probe=none"
    if any(one.counted for one in tried):
        return "no trial has enough steps for a steady step time that counts", "set train.steps to more, see notes"
    records = [record for one in tried for record in one.sample.finished]
    hot = [bool(throttled(record)) for record in records]
    if all(hot):
        return "every trial was throttled", "ask again when the device is cool"
    let_in = any(record.environment.get("exclusive") is False for record in records)
    alone = "without exclusive=false" if let_in else "when nothing else runs on the device"
    return f"every trial shared the device{' or was throttled' if any(hot) else ''}", f"ask again {alone}"


def _all_undecided(what: str) -> dict[str, Any]:
    return {name: {"undecided": what} for name in QUESTIONS}


def _noting(answer: dict[str, Any], without: Sequence[Candidate]) -> dict[str, Any]:
    """The answer and why which cells have no rank."""
    reasons: dict[str, list[str]] = {}
    for one in without:
        if one.label != answer.get("label"):
            reasons.setdefault(one.unranked, []).append(one.label)
    if not reasons or "undecided" in answer:
        return answer
    words = [f"without {', '.join(labels)}, {reason}" for reason, labels in reasons.items()]
    return answer | {"why": "; ".join([answer["why"], *words])}


def _fastest(terms: Terms) -> dict[str, Any]:
    if len(terms.ranked) == 1:
        return {"undecided": "needs a second mode to compare with"}
    best = _least(terms.ranked, terms)
    return {"undecided": best} if isinstance(best, str) else _answer(best, "least time", terms.ranked, terms)


def _reproducible(tried: Sequence[Candidate], terms: Terms) -> dict[str, Any]:
    """The least of those that repeat; bits do not depend on the clock, so that one without a rank may be the only."""
    repeating = [one for one in tried if one.repeats]
    if not repeating:
        return {"undecided": _none_repeats(tried)}
    best = _least([one for one in repeating if one in terms.ranked] or repeating, terms)
    if isinstance(best, str):
        return {"undecided": best}
    only = "the only mode here that repeats" if len(repeating) == 1 else "least time of those that repeat"
    return _answer(best, f"{best.repeats}; {only}", repeating, terms)


def _repeating(tried: Sequence[Candidate], terms: Terms) -> dict[str, Any]:
    """The only mode that repeats, where none has a speed; of several each."""
    repeating = [one for one in tried if one.repeats]
    if len(repeating) < 2:
        return _reproducible(tried, terms)
    each = ", ".join(f"{one.label} ({one.repeats})" for one in repeating)
    return {"undecided": f"{each} repeat; which takes least time is not known: {', '.join(_unmeasured(tried))}"}


def _none_repeats(tried: Sequence[Candidate]) -> str:
    varied = dict.fromkeys(name for one in tried for name in one.divergence.seeds_varied)
    if varied:
        return f"needs seeds=fixed: here seeds differ by design ({', '.join(varied)})"
    if any(one.divergence.poked for one in tried):
        return f"needs train.poke=none: here {ON_PURPOSE}"
    if max(one.trials for one in tried) < LEAST_TRIALS:
        return f"needs at least {LEAST_TRIALS} finished trials a cell"
    return f"needs a mode bitwise equal in all of at least {LEAST_TRIALS} trials: there is none here"


def _balanced(terms: Terms) -> dict[str, Any]:
    """The least of the cells whose speed does not hang on tuning: of one plan, with no further input sizes to tune."""
    if len(terms.ranked) == 1:
        return {"undecided": "needs a second mode to compare with"}
    hanging = [f"{one.label} {one.hangs_on_tuning}" for one in terms.ranked if one.hangs_on_tuning]
    steady = [one for one in terms.ranked if not one.hangs_on_tuning]
    few = [one.label for one in steady if one.tunes and one.counted < LEAST_TRIALS]
    if few:
        needed = f"needs at least {LEAST_TRIALS} trials whose speed counts"
        draw = "draws" if len(few) == 1 else "draw"
        return {"undecided": f"{needed}, to tell whether {' and '.join(few)} {draw} several plans"}
    if not steady:
        return {"undecided": f"needs a mode whose speed does not hang on tuning: {', '.join(hanging)}"}
    best = _least(steady, terms)
    if isinstance(best, str):
        return {"undecided": best}
    others = f" ({', '.join(hanging)})" if hanging else ""
    return _answer(best, f"least time of those whose speed does not hang on tuning{others}", steady, terms)


def _least(candidates: Sequence[Candidate], terms: Terms) -> Candidate | str:
    """The candidate that takes least time if it is told apart from every other, else what would settle it.

    It is compared with each of the others directly, in pairs of trials.
    """
    if len(candidates) == 1:
        return candidates[0]
    unknown = [one.label for one in candidates if one.cost.expected_s is None]
    if unknown:
        return f"needs a steady step time that counts in {', '.join(unknown)}"
    best = min(candidates, key=lambda one: one.expected_s)
    ratios = [(one, terms.ratio(best, one)) for one in candidates if one is not best]
    undecided = [(one, ratio) for one, ratio in ratios if ratio.verdict not in ("faster", "equivalent")]
    if undecided:
        return more_rounds(best, undecided, terms)
    equivalent = [one for one, ratio in ratios if ratio.verdict == "equivalent"]
    return tie([best, *equivalent], terms) if equivalent else best


def _answer(best: Candidate, why: str, rivals: Sequence[Candidate], terms: Terms) -> dict[str, Any]:
    """An answer with its reasons; `rivals` are those that answer the same question, the best one among them."""
    expected_s = _in_all(best.cost.expected_s, terms.plan)
    energy_j = _in_all(best.cost.energy_j, terms.plan)
    price = terms.plan.price_per_hour
    cost = None if price is None or expected_s is None else price * expected_s / 3600
    reasons = [
        f"{why}: {time_needed(best, rivals, terms)}",
        *priced(cost, price, energy_j),
        *drawn(best),
        *payback(best, rivals),
    ]
    found = {"cell": best.sample.cell.id, "label": best.label, "why": "; ".join(reasons)}
    return found | {"expected_s": expected_s, "cost": cost, "energy_j": energy_j}


def _in_all(figure: float | None, plan: Plan) -> float | None:
    return None if figure is None else figure * plan.runs
