"""The lottery of tuning: which trials of a cell drew the same plan, told from the gaps between their step times."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from scipy import stats

from runner.analysis.host_bound import host_bound
from runner.record import Plain, Record

# A plan is what trials share: a single one that stands apart may as well have been disturbed.
LEAST_DRAWS = 2
MOST_PLANS = 4
# A narrower gap matters to nobody, and drift over a study or the states of a clock can leave one.
LEAST_GAP = 0.03
# The centres of two plans are told apart if they lie t.isf(TAIL, degrees of freedom) times the scatter within the plans
# from each other: far for one t statistic, because the cut is where it makes that large. Simulated, 10,000 studies of
# 5, 10, 15 and 20 normal trials: at most 0.6 % are cut wrongly at a noise of up to 3 %, fewer than 5 % at any noise.
# Two plans 20 % apart, each drawn twice or more, are told apart in 95 % of studies of 10 trials at a noise of 2 % (58 %
# at 3 %) and of 20 trials at 3 %; of 5 trials all at 0.2 % and 37 % at 1 %. Plans 10 % apart: 95 % of 10 trials at 1 %.
TAIL = 8e-5
# With the scatter of the baseline too, plans 20 % apart are told apart in 97 % of studies of 5 trials at 2 %, plans
# 10 % apart at 1 %; of 10 trials in 95 % at 3 % and 99 % at 1 %. Cut wrongly are fewer than 5 % of normal samples, at
# any noise that both share, and at up to 3 % where the baseline has hardly any. FEW trials need no other's scatter.
FEW, LEAST_GAP_BESIDE, TAIL_BESIDE = 15, 0.05, 3e-4

Card = tuple[Plain, Plain]


def plans_of(step_ms: Sequence[float], beside: Sequence[float] = ()) -> list[list[int]]:
    """The trials' indices grouped by plan, the fastest plan first; one group where no lottery is seen.

    The sorted times are cut at their widest gaps, as many as leave five trials to a gap and MOST_PLANS plans. The most
    cuts count that leave plans drawn LEAST_DRAWS times and far apart against the scatter within them; a trial cut off
    alone joins the nearest plan. All on logarithms, so that a gap is a share.

    `beside` are times of another cell. Fewer than FEW trials hardly tell their own scatter: a gap of LEAST_GAP_BESIDE
    that is far against the scatter of both cells together counts as well.
    """
    logs, others = (np.log(np.asarray(times, dtype=float)) for times in (step_ms, beside))
    order = np.argsort(logs, kind="stable")
    gaps = np.diff(logs[order])
    widest = np.argsort(-gaps, kind="stable")[: max(1, min(MOST_PLANS - 1, len(logs) // 5))]
    wide = widest[gaps[widest] > np.log1p(LEAST_GAP)]
    for cuts in range(len(wide), 0, -1):
        parts = np.split(order, np.sort(wide[:cuts]) + 1)
        plans = [part for part in parts if len(part) >= LEAST_DRAWS]
        if len(plans) > 1 and _told_apart([logs[plan] for plan in plans], others):
            return _joined(logs, plans, [part[0] for part in parts if len(part) < LEAST_DRAWS])
    return [list(range(len(logs)))] if len(logs) else []


def _told_apart(plans: list[np.ndarray], others: np.ndarray) -> bool:
    nearest = np.diff([plan.mean() for plan in plans]).min()
    gap = min(later.min() - earlier.max() for earlier, later in pairwise(plans))
    few = sum(map(len, plans)) < FEW and len(others) > 1 and gap > np.log1p(LEAST_GAP_BESIDE)
    return _far(nearest, plans, TAIL) or (few and _far(nearest, [*plans, others], TAIL_BESIDE))


def _far(nearest: float, parts: list[np.ndarray], tail: float) -> bool:
    freedom = sum(len(part) - 1 for part in parts)
    scatter = np.sqrt(sum(part.var() * len(part) for part in parts) / freedom)
    return bool(nearest > stats.t.isf(tail, freedom) * scatter)


def _joined(logs: np.ndarray, plans: list[np.ndarray], alone: list[np.int64]) -> list[list[int]]:
    centres = np.array([logs[plan].mean() for plan in plans])
    groups = [plan.tolist() for plan in plans]
    for index in alone:
        groups[int(np.abs(centres - logs[index]).argmin())].append(int(index))
    return [sorted(group) for group in groups]


@dataclass(frozen=True)
class StepGroup:
    """`trials` trials whose steps take alike long: the median of these, and its ratio to the baseline's."""

    step_ms: float
    trials: int
    ratio: float | None


def step_groups(own: Sequence[Record], baseline: Sequence[Record]) -> list[StepGroup]:
    """The groups that trials fall into by their step times, the fastest first; empty where there is one only.

    In a cell that tunes they are the plans that processes drew; in any other they come of disturbances.

    Each step time is taken relative to the baseline's on the same card, because cards of one kind differ by several
    percent, which is no lottery; on several cards without a baseline on each, nothing can be told. The baseline's own
    times show how far trials scatter, unless they are the ones that are looked at. Trials whose steps were bound by
    the host are left out: they show its pace, and no plan.
    """
    own, baseline = (_bound_by_the_device(records) for records in (own, baseline))
    usual, times = _median_by_card(baseline), _by_card(own)
    known = all(card in usual for card in times)
    if not known and len(times) > 1:
        return []
    step_ms = [value for values in times.values() for value in values]
    relative = [value / usual[card] if known else value for card, values in times.items() for value in values]
    others = _by_card(baseline) if known and list(own) != list(baseline) else {}
    groups = plans_of(relative, [value / usual[card] for card, values in others.items() for value in values])
    return [
        StepGroup(
            step_ms=median(step_ms[index] for index in group),
            trials=len(group),
            ratio=median(relative[index] for index in group) if known else None,
        )
        for group in groups
        if len(groups) > 1
    ]


def _bound_by_the_device(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.speed and not host_bound(record.speed)]


def _by_card(records: Sequence[Record]) -> dict[Card, list[float]]:
    times: dict[Card, list[float]] = {}
    for record in records:
        if record.speed and record.speed.step_ms is not None:
            card = record.environment.get("host"), record.environment.get("gpu_uuid")
            times.setdefault(card, []).append(record.speed.step_ms)
    return times


def _median_by_card(records: Sequence[Record]) -> dict[Card, float]:
    return {card: median(values) for card, values in _by_card(records).items()}
