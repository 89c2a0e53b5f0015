"""Divergence: whether the trials of a cell repeat bit by bit, and where they part if they do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from runner.analysis.words import ON_PURPOSE, steps_words
from runner.record import Digests, Record
from runner.series import Series

ReproducibilityVerdict = Literal["bitwise", "metric-only", "loss-only", "differs", "single"]
Subject = Literal["weights", "outputs", "results"]
SUBJECTS: dict[str, Subject] = {"infer": "outputs", "calls": "results"}
WORSE: tuple[ReproducibilityVerdict, ...] = ("bitwise", "metric-only", "loss-only", "differs")


@dataclass(frozen=True)
class Divergence:
    """What agrees over all finished trials of a cell; steps count from 1, None where nothing differs (or is known).

    `verdict` is None without a finished trial. `seeds_varied` names the streams whose seed differs by design.
    `weights_equal_after` is the last checkpoint before the first at which weights differ (`weights_differ_after`).
    `poked`: each trial had another weight changed on purpose, so that weights differ by design.
    `subject` is what these checkpoints and `unique_weights` are of: with phase=infer all outputs so far, with
    phase=calls all results: outputs and gradients.
    `fewest_steps`: trials took different numbers of steps, and none fewer than these, up to which data and losses are
    compared; None where all took as many. `evaluated` is False where no evaluation is seen, with phase=attach.

    All this is about processes, each with its first training. `repeats` is how many trainings each process did from the
    same state; `within_process` is the verdict over those of one process, the worst of all, and `within_differing` in
    how many processes they were not bitwise equal. With a single training `within_process` is None.
    """

    subject: Subject
    trials: int
    interpreters: int
    verdict: ReproducibilityVerdict | None
    unique_weights: int
    seeds_varied: list[str]
    same_start: bool
    first_data_step: int | None
    first_loss_step: int | None
    weights_equal_after: int | None
    weights_differ_after: int | None
    same_evaluation: bool
    repeats: int = 1
    within_process: ReproducibilityVerdict | None = None
    within_differing: int = 0
    poked: bool = False
    fewest_steps: int | None = None
    evaluated: bool = True

    @property
    def first_diverging_step(self) -> int | None:
        """The first step at which anything seen differs: 0 for the initial weights, None if nothing does."""
        if not self.same_start:
            return 0
        end = None if self.fewest_steps is None else self.fewest_steps + 1
        steps = (self.first_data_step, self.first_loss_step, self.weights_differ_after, end)
        return min((step for step in steps if step is not None), default=None)

    @property
    def bound_95(self) -> float | None:
        """The upper 95 % bound of the chance that a further process differs, of bitwise equal trials only."""
        return equality_bound(self.trials) if self.verdict == "bitwise" else None

    @property
    def bound_95_new_start(self) -> float | None:
        """The same about a new start of Python: it counts interpreters, not processes."""
        return equality_bound(self.interpreters) if self.verdict == "bitwise" else None

    @property
    def sentence(self) -> str:
        """What agrees and where the trials part, in words."""
        if self.trials < 2:
            return "one trial: nothing to compare" if self.trials else "no finished trial"
        parts = [
            "same start" if self.same_start else "different start",
            f"data differ first at step {self.first_data_step}" if self.first_data_step else "same data",
            f"first loss difference at step {self.first_loss_step}" if self.first_loss_step else "same losses",
            self._weights,
            "same evaluation" if self.same_evaluation else self._other_evaluation,
        ]
        if self.subject == "results":  # calls have no losses and no evaluation
            parts = [*parts[:2], self._weights]
        elif not self.evaluated:
            parts = parts[:-1]
        if self.fewest_steps is not None:
            parts.append(steps_words(self.fewest_steps))
        seeds = f" (by design the seeds differ: {', '.join(self.seeds_varied)})" if self.seeds_varied else ""
        return ", ".join(parts) + seeds + (f" ({ON_PURPOSE})" if self.poked else "")

    @property
    def _other_evaluation(self) -> str:
        """Each trial is evaluated after its last step: after another one nothing can be said."""
        return "evaluation differs" if self.fewest_steps is None else "evaluated after different numbers of steps"

    @property
    def _weights(self) -> str:
        if self.weights_differ_after is None:
            return f"same {self.subject}"
        if self.weights_equal_after is None:
            return f"{self.subject} differ after step {self.weights_differ_after}"
        equal, differ = self.weights_equal_after, self.weights_differ_after
        return f"{self.subject} equal after step {equal}, differ after step {differ}"


def equality_bound(n: int) -> float | None:
    """1 - 0.05^(1/(n-1)): n equal of n, the first defining the reference, leave this chance of a difference (95 %)."""
    return 1 - 0.05 ** (1 / (n - 1)) if n > 1 else None


def divergence(
    records: Sequence[Record], series: Sequence[Series], phase: str = "train", poked: bool = False
) -> Divergence:
    """Compare the finished trials of one cell by their digests, and by their series where these are there."""
    digests = [record.digests for record in records if record.digests]
    equal_after, differ_after = _weights_part(records)
    steps = {len(one.data) for one in series}
    return Divergence(
        subject=SUBJECTS.get(phase, "weights"),
        trials=len(digests),
        interpreters=len({record.process.get("interpreter") for record in records}),
        verdict=_verdict(digests),
        unique_weights=len({digest.final for digest in digests}),
        seeds_varied=_varied(records),
        same_start=len({digest.initial for digest in digests}) <= 1,
        first_data_step=_first_difference([one.data for one in series]),
        first_loss_step=_first_difference([one.loss for one in series]),
        weights_equal_after=equal_after,
        weights_differ_after=differ_after,
        same_evaluation=_same_evaluation(digests),
        poked=poked,
        fewest_steps=min(steps) if len(steps) > 1 else None,
        evaluated=phase != "attach",
        **_within(records),
    )


def _verdict(digests: list[Digests]) -> ReproducibilityVerdict | None:
    if len(digests) < 2:
        return "single" if digests else None
    if len({digest.final for digest in digests}) > 1:
        return "differs"
    if len({digest.losses for digest in digests}) > 1:
        return "loss-only"
    return "bitwise" if _same_evaluation(digests) else "metric-only"


def _within(records: Sequence[Record]) -> dict[str, Any]:
    """What the trainings within each process say, by field of Divergence; nothing where there was one in each."""
    trainings = [[record.digests, *record.again] for record in records if record.digests and record.again]
    verdicts = [verdict for verdict in map(_verdict, trainings) if verdict]
    if not verdicts:
        return {}
    return {
        "repeats": min(map(len, trainings)),
        "within_process": max(verdicts, key=WORSE.index),
        "within_differing": len(verdicts) - verdicts.count("bitwise"),
    }


def _same_evaluation(digests: list[Digests]) -> bool:
    return len({(digest.metrics, digest.predictions) for digest in digests}) <= 1


def _varied(records: Sequence[Record]) -> list[str]:
    streams = dict.fromkeys(name for record in records for name in record.seeds)
    return [name for name in streams if len({record.seeds.get(name) for record in records}) > 1]


def _weights_part(records: Sequence[Record]) -> tuple[int | None, int | None]:
    """The last checkpoint of all trials at which they agree before the first at which they differ, and that one."""
    trials = [_checkpoints(record) for record in records if record.digests]
    equal: int | None = None
    for step in sorted(set.intersection(*map(set, trials))) if trials else []:
        if len({trial[step] for trial in trials}) > 1:
            return equal, step
        equal = step
    return equal, None


def _checkpoints(record: Record) -> dict[int, str]:
    if record.digests is None:
        return {}
    last = {record.speed.steps: record.digests.final} if record.speed else {}
    return {int(step): digest for step, digest in record.digests.steps.items()} | last


def _first_difference(arrays: list[np.ndarray]) -> int | None:
    """The first step (from 1) of those all took without the same bits in all; NaN equals NaN of the same bits."""
    if len(arrays) < 2:
        return None
    common = min(len(array) for array in arrays)
    bits = np.stack([_bits(array[:common]) for array in arrays])
    steps = np.flatnonzero((bits != bits[0]).any(axis=(0, 2)))
    return int(steps[0]) + 1 if steps.size else None


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)
