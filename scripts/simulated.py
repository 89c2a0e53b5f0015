"""Studies of which the truth is known: step times drawn from a scenario, and what our analysis makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from runner.analysis.environment import Environment
from runner.analysis.figure import Interval, mean_interval, sd_interval
from runner.analysis.looks import Looks
from runner.analysis.lottery import step_groups
from runner.analysis.ratio import Ratio, compare, paired_ratio
from runner.analysis.sample import Sample
from runner.cell import Cell
from runner.plan import USUAL
from runner.record import Record, Speed
from runner.rounds import in_order

LOOKS = (5, 10, 20)
CELLS = [Cell({"cudnn": {"benchmark_limit": limit}}) for limit in range(4)]  # the first is the baseline
OTHERS = len(CELLS) - 1
STEP_MS = 100.0
VERDICTS = ("faster", "slower", "equivalent", "undecided")
OUTLIER = (0.10, 0.30)  # how much slower an outlier is
WHERE: dict[str, Any] = {"host": "simulated", "device": "cuda", "gpu_uuid": "simulated"}


@dataclass(frozen=True)
class Scenario:
    """How step times come about; all numbers are shares, 0.01 is 1 %.

    `noise` is the sd of a trial's log step time, `truths` are the true ratios to the baseline, `outliers` the chance
    that a trial is 10 to 30 % slower, `drift` is added each round, `place` for each position within a round. With a
    `gap` each trial of the last cell draws one of two plans, so far apart, with equal chances.
    """

    name: str
    noise: float
    truths: tuple[float, ...] = (1.0,) * OTHERS
    outliers: float = 0.0
    drift: float = 0.0
    place: float = 0.0
    shuffled: bool = True
    gap: float = 0.0
    margin: float = USUAL.margin

    @property
    def log_truths(self) -> np.ndarray:
        """The logarithms of the true ratios, of the last cell's that of its two plans' geometric mean."""
        halves = [0.0] * (OTHERS - 1) + [np.log1p(self.gap) / 2]
        return np.asarray(np.log(self.truths) + np.array(halves))


@dataclass(frozen=True)
class Drawn:
    """One simulated study: log step times (rounds, cells), and which trials of the last cell drew the slow plan."""

    logs: np.ndarray
    slow: np.ndarray


def draw(scenario: Scenario, rounds: int, rng: np.random.Generator) -> Drawn:
    """Draw a study. Rounds are in the product's own shuffled order, or in the order of the cells."""
    shape = rounds, len(CELLS)
    position = np.tile(np.arange(len(CELLS)), (rounds, 1))
    if scenario.shuffled:
        name = str(rng.integers(2**60))
        orders: list[Any] = [in_order(list(range(len(CELLS))), name, number) for number in range(rounds)]  # type: ignore[arg-type]
        position = np.argsort(orders, axis=1)
    logs = np.log(STEP_MS) + rng.normal(0, scenario.noise, shape) + np.log([1.0, *scenario.truths])
    outlying = rng.random(shape) < scenario.outliers
    logs += np.log1p(outlying * rng.uniform(*OUTLIER, shape))
    logs += scenario.drift * (np.arange(rounds)[:, None] + position / len(CELLS)) + scenario.place * position
    slow = rng.random(rounds) < 0.5
    logs[:, -1] += np.log1p(slow * scenario.gap)
    return Drawn(logs, slow)


def samples(logs: np.ndarray) -> list[Sample]:
    """The samples that records with these log step times (rounds, cells) make."""
    speed = Speed(120, 500.0, STEP_MS, None, None, [], None, None, 0.5, 12.0, 0.1)
    blank = Record("", 0, 0, "finished", None, False, "", "", {}, WHERE, {}, {})
    return [
        Sample(cell, cell.id, Environment.of(blank), _records(cell, blank, speed, times), CELLS[0].id)
        for cell, times in zip(CELLS, np.exp(logs).T.tolist(), strict=True)
    ]


def _records(cell: Cell, blank: Record, speed: Speed, step_ms: list[float]) -> list[Record]:
    return [
        replace(blank, cell=cell.id, number=number, speed=replace(speed, step_ms=value))
        for number, value in enumerate(step_ms)
    ]


def looked_at(whole: Sequence[Sample], looks: Looks, margin: float) -> list[Ratio]:
    """The ratios of all other cells to the baseline, at the last of these looks."""
    base, *others = [replace(one, records=one.records[: looks.at[-1]]) for one in whole]
    return [compare(one, base, OTHERS, margin, looks) for one in others]


def judged(scenario: Scenario, drawn: Drawn) -> Iterator[tuple[str, bool]]:
    """What is to be counted in one study, as pairs of a name and whether it was so."""
    whole, truths = samples(drawn.logs), np.exp(scenario.log_truths)
    never_wrong = always_covered = True
    for index, rounds in enumerate(LOOKS):
        ratios = looked_at(whole, Looks((rounds,)), scenario.margin)
        yield f"{rounds} wrong claim", wrong_claim(ratios, truths, scenario.margin)
        yield f"{rounds} all covered", all_covered(ratios, truths)
        for truth, ratio in zip(truths, ratios, strict=True):
            for verdict in VERDICTS:
                yield f"{rounds} {verdict} at {truth:.4g}", ratio.verdict == verdict
        for name, value in chain(_intervals(scenario, drawn, rounds), _plans(scenario, drawn, rounds, whole)):
            yield f"{rounds} {name}", value
        later = looked_at(whole, Looks(LOOKS[: index + 1]), scenario.margin) if index else ratios
        never_wrong &= not wrong_claim(later, truths, scenario.margin)
        always_covered &= all_covered(later, truths)
    yield "wrong claim at any look", not never_wrong
    yield "all covered at every look", always_covered


def all_covered(ratios: Sequence[Ratio], truths: np.ndarray) -> bool:
    """Whether each interval holds its true ratio, without which no claim can be wrong."""
    return all(_covers(ratio.ci95, truth) for ratio, truth in zip(ratios, truths, strict=True))


def wrong_claim(ratios: Sequence[Ratio], truths: np.ndarray, margin: float) -> bool:
    """Whether any verdict claims what is not true; a ratio on the margin's edge is not within it."""
    within = (1 / (1 + margin) < truths) & (truths < 1 + margin)
    wrong = {"faster": truths >= 1, "slower": truths <= 1, "equivalent": ~within}
    return any(ratio.verdict in wrong and wrong[ratio.verdict][index] for index, ratio in enumerate(ratios))


def _intervals(scenario: Scenario, drawn: Drawn, rounds: int) -> Iterator[tuple[str, bool]]:
    """The 95 % intervals of one comparison, of a mean and of an sd."""
    logs, base_ms = drawn.logs[:rounds], np.exp(drawn.logs[:rounds, 0]).tolist()
    alone = paired_ratio((logs[:, 1] - logs[:, 0]).tolist(), 0.95, scenario.margin)
    yield "ratio covered", _covers(alone.ci95, scenario.truths[0])
    mean, sd = plain_truth(scenario, rounds)
    yield "mean covered", _covers(mean_interval(base_ms), mean)
    yield "sd covered", _covers(sd_interval(base_ms), sd)


def _plans(scenario: Scenario, drawn: Drawn, rounds: int, whole: Sequence[Sample]) -> Iterator[tuple[str, bool]]:
    """Whether a lottery was seen where there is none, and where both plans were drawn twice at least."""
    base, other, *_, last = (one.records[:rounds] for one in whole)
    yield "lottery where none is", bool(step_groups(other, base))
    slow = int(drawn.slow[:rounds].sum())
    if scenario.gap and min(slow, rounds - slow) >= 2:
        plans = step_groups(last, base)
        yield "lottery recognised", bool(plans)
        yield "plans counted right", [plan.trials for plan in plans] == [rounds - slow, slow]


def plain_truth(scenario: Scenario, rounds: int) -> tuple[float, float]:
    """The mean and the sd in ms that a trial of the baseline has in expectation, over all of these rounds."""
    places = np.arange(len(CELLS))
    steady = scenario.drift * (np.arange(rounds)[:, None] + places / len(CELLS)) + scenario.place * places
    factor = np.exp(steady if scenario.shuffled else steady[:, :1])
    chance, middle = scenario.outliers, np.mean(OUTLIER)
    second = 1 + 2 * chance * middle + chance * (middle**2 + np.ptp(OUTLIER) ** 2 / 12)
    mean = np.mean(factor) * np.exp(scenario.noise**2 / 2) * (1 + chance * middle)
    square = np.mean(factor**2) * np.exp(2 * scenario.noise**2) * second
    return STEP_MS * float(mean), STEP_MS * float(np.sqrt(square - mean**2))


def _covers(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]
