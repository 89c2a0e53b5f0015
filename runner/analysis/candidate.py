"""A candidate: what a recommendation looks at in one cell, and the terms on which candidates are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from runner.analysis.contention import throttled
from runner.analysis.cost import Cost
from runner.analysis.divergence import Divergence
from runner.analysis.looks import Looks
from runner.analysis.ratio import Ratio, compare, unclaimed
from runner.analysis.sample import Sample
from runner.analysis.speed import SpeedFigures
from runner.plan import Plan

LEAST_TRIALS = 5
HOST_BOUND = "both are bound by the host"


@dataclass(frozen=True)
class Candidate:
    """One cell in one environment, with the figures that speak for it or against it."""

    sample: Sample
    speed: SpeedFigures
    cost: Cost
    divergence: Divergence
    flags_as_asked: bool

    @property
    def label(self) -> str:
        """The mode with its pair, and what else tells the cell apart."""
        return self.sample.label

    @property
    def is_default(self) -> bool:
        """Whether this is the cell that others are compared with."""
        return self.speed.ratio_to_baseline.baseline

    @property
    def expected_s(self) -> float:
        """The expected time of one training, infinite where it is not known."""
        return inf if self.cost.expected_s is None else self.cost.expected_s

    @property
    def step_ms(self) -> float | None:
        """The mean steady step time."""
        return self.speed.step_ms.mean if self.speed.step_ms else None

    @property
    def tuning_s(self) -> float:
        """What tuning costs, 0 where no cost was seen."""
        return self.speed.autotune_s or 0.0 if self.speed.autotune_seen else 0.0

    @property
    def trials(self) -> int:
        """How many trials finished."""
        return self.divergence.trials

    @property
    def counted(self) -> int:
        """How many trials have a speed that counts."""
        return len(self.sample.timed)

    @property
    def unranked(self) -> str:
        """Why it has no rank, in words, where it has no speed that counts."""
        if not self.trials:
            return "of which no trial finished"
        hot = all(map(throttled, self.sample.finished))
        return "whose trials were throttled" if hot else "whose trials shared the device or were throttled"

    @property
    def repeats(self) -> str | None:
        """What repeated in all of enough trials, the weights and the evaluation at least; None if it did not."""
        if self.trials < LEAST_TRIALS or not self.divergence.same_evaluation:
            return None
        loss = "training loss" if self.divergence.subject == "weights" else "loss"
        equal = f"{self.divergence.subject} bitwise equal, {self.trials} of {self.trials}"
        return {
            "bitwise": f"bitwise, {self.trials} of {self.trials}",
            "loss-only": f"{equal}, the logged {loss} differs",
        }.get(str(self.divergence.verdict))

    @property
    def tunes(self) -> bool:
        """Whether the cell tunes: only then can a further trial draw another plan."""
        return self.sample.tunes

    @property
    def hangs_on_tuning(self) -> str | None:
        """In what way the speed hangs on tuning, None if it was not seen to."""
        if self.speed.plans:
            return f"draws {len(self.speed.plans)} plans"
        sizes = self.speed.shapes or 1
        return f"tunes for each of {sizes} input sizes" if self.sample.benchmarks and sizes > 1 else None


@dataclass(frozen=True)
class Terms:
    """On what terms candidates are compared: for which plan, at which look, and among which that are ranked.

    A wrong cell is called the least only if the truly least one loses against one of the others, so that there are one
    comparison less than cells.
    """

    plan: Plan
    looks: Looks
    ranked: Sequence[Candidate]

    def ratio(self, own: Candidate, other: Candidate) -> Ratio:
        """The time of one candidate's training over that of another's, with its verdict."""
        comparisons = len(self.ranked) - 1
        ratio = compare(own.cost.trainings, other.cost.trainings, comparisons, self.plan.margin, self.looks)
        bound = own is not other and own.speed.host_bound and other.speed.host_bound
        return unclaimed(ratio, HOST_BOUND) if bound else ratio
