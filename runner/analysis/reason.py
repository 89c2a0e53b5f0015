"""Reasons: why a mode is recommended or none is, in words."""

from collections.abc import Iterable, Sequence
from math import inf

from runner.analysis.candidate import HOST_BOUND, Candidate, Terms
from runner.analysis.contention import PROBED
from runner.analysis.looks import MOST_ROUNDS
from runner.analysis.ratio import OTHER_CARDS, Ratio
from runner.analysis.words import percent, plan_words
from runner.duration import exact


def time_needed(best: Candidate, rivals: Sequence[Candidate], terms: Terms) -> str:
    """The expected time of the plan, and how much less or more than the default's; the default's beside the next."""
    if best.sample.probed:
        return f"its time is not known: {PROBED}"
    if best.cost.expected_s is None:
        return "its time is not known for want of a steady step time"
    words = f"{exact(best.cost.expected_s * terms.plan.runs)} for {_planned(best, terms)}"
    other = _beside(best, rivals, terms)
    return f"{words}, {_difference(terms.ratio(best, other), other, terms)}" if other else words


def _planned(one: Candidate, terms: Terms) -> str:
    return plan_words(terms.plan.steps, terms.plan.runs, one.sample.cell.phase)


def _beside(best: Candidate, rivals: Sequence[Candidate], terms: Terms) -> Candidate | None:
    timed = [one for one in (rivals if best.is_default else terms.ranked) if one.cost.expected_s is not None]
    if not best.is_default:
        return next((one for one in timed if one.is_default), None)
    return min((one for one in timed if one is not best), key=lambda one: one.expected_s, default=None)


def _difference(ratio: Ratio, other: Candidate, terms: Terms) -> str:
    if ratio.value is None or ratio.verdict not in ("faster", "slower", "equivalent"):
        return f"not told apart from {other.label} yet"
    if ratio.verdict == "equivalent":
        return f"as {other.label} within {percent(terms.plan.margin)}"
    return f"{percent(abs(1 - ratio.value))} {'less' if ratio.value < 1 else 'more'} than {other.label}"


def priced(cost: float | None, price_per_hour: float | None, energy_j: float | None) -> list[str]:
    """Money and energy of the plan, as far as they are known."""
    money = [] if cost is None else [f"{cost:,.2f} at {price_per_hour:g} an hour"]
    return money + ([] if energy_j is None else [f"{energy_j / 3.6e6:.3g} kWh"])


def drawn(best: Candidate) -> list[str]:
    """What the time is the mean of, where tuning is a lottery."""
    plans = [f"{one.step_ms:.4g} ms in {one.trials} of {best.counted}" for one in best.speed.plans]
    return [f"the mean over the {len(plans)} plans that it drew ({', '.join(plans)})"] if plans else []


def payback(best: Candidate, rivals: Sequence[Candidate]) -> list[str]:
    """After how many steps tuning is paid for: the best one's beside all that tune less, else a rival's beside it."""
    paid = [(steps, one.label) for one in rivals if (steps := _break_even(best, one)) is not None]
    if paid:
        steps, rival = max(paid)
        return [f"its tuning pays back after {steps:,.0f} steps beside {rival}"]
    unpaid = [(steps, one.label) for one in rivals if (steps := _break_even(one, best)) is not None]
    return [f"the tuning of {rival} would pay back after {steps:,.0f} steps" for steps, rival in sorted(unpaid)[:1]]


def _break_even(tuned: Candidate, other: Candidate) -> float | None:
    """Steps after which what the one tunes more is made up for by its faster step; None if it does not or need not."""
    more_s, step_ms, other_ms = tuned.tuning_s - other.tuning_s, tuned.step_ms, other.step_ms
    if more_s <= 0 or step_ms is None or other_ms is None or step_ms >= other_ms:
        return None
    return 1000 * more_s / (other_ms - step_ms)


def tie(tied: Sequence[Candidate], terms: Terms) -> str:
    """That several take as long as each other."""
    return f"a tie within {percent(terms.plan.margin)}: {_named(tied, terms)} for {_planned(tied[0], terms)}"


def more_rounds(best: Candidate, open_: Sequence[tuple[Candidate, Ratio]], terms: Terms) -> str:
    """That the least may be one of several, and how many rounds would tell, if any would."""
    names = _named([best, *(one for one, _ in open_)], terms)
    why = dict.fromkeys(ratio.why for _, ratio in open_ if ratio.why)
    helped = [ratio for _, ratio in open_ if ratio.why not in (HOST_BOUND, OTHER_CARDS)]
    lead = f"needs {_rounds(helped, terms)}: not told apart yet are" if helped else "not told apart are"
    return f"{lead} {names}{_in_brackets(why)}"


def _named(candidates: Sequence[Candidate], terms: Terms) -> str:
    times = [(one.label, (one.cost.expected_s or 0.0) * terms.plan.runs) for one in candidates]
    return " and ".join(f"{label} ({exact(seconds)})" for label, seconds in times)


def _in_brackets(parts: Iterable[str]) -> str:
    text = "; ".join(parts)
    return f" ({text})" if text else ""


def _rounds(ratios: Sequence[Ratio], terms: Terms) -> str:
    """The range that settles all of them: "5 to 12 more rounds", "a new study of 30 to 60 rounds", "more rounds"."""
    ranges = [ratio.rounds for ratio in ratios if ratio.rounds]
    if len(ranges) < len(ratios):
        return "more rounds"
    new_study = any(ratio.new_study for ratio in ratios)
    there = 0 if new_study else terms.looks.at[-1]
    low, high = (max(inf if end is None else end - there for end in ends) for ends in zip(*ranges, strict=True))
    words, plural = _range(low, high), "" if high == 1 else "s"
    return f"a new study of {words} round{plural}" if new_study else f"{words} more round{plural}"


def _range(low: float, high: float) -> str:
    most = f"more than {MOST_ROUNDS:,}"
    upper = most if high == inf else f"{high:.0f}"
    return upper if low == high else f"{low:.0f} to {upper}"
