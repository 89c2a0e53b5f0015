"""Quantities over pairs of trials: how far two of a cell, or of two cells, lie from each other."""

from collections.abc import Callable, Sequence

from runner.analysis.figure import Interval
from runner.analysis.measured import Answer, Measured, Measurement
from runner.analysis.two_cells import disagreement_between
from runner.recipe import Published


def disagreement(own: Measurement, row: Published) -> Answer:
    """The share of the test set on which two trials differ in %; exactly 0 has no spread, and so is its interval."""
    found = own.cell["reproducibility"]
    if found["disagreement"] is None:
        return "two trials that predict classes are needed"
    return _figure(100 * found["disagreement"], _percent(found["disagreement_ci95"]), found["trials"])


def disagreement_with(own: Measurement, other: Measurement) -> Answer:
    """The share of the test set on which a trial of one cell and one of the other differ, in %."""
    found = disagreement_between(own.series(), other.series())
    if found is None:
        return "trials that predict classes are needed in both cells"
    return _figure(100 * found.mean, _percent(found.ci95), found.trials)


def weight_distance(own: Measurement, row: Published) -> Answer:
    """The Euclidean distance of two trials' final weights."""
    return _distance(own, "weight_l2")


def unit_weight_distance(own: Measurement, row: Published) -> Answer:
    """The same of the weights at unit length."""
    return _distance(own, "unit_weight_l2")


def _distance(own: Measurement, name: str) -> Answer:
    found = own.cell["reproducibility"]
    if found[name] is None:
        return "two trials with finite weights are needed"
    return _figure(found[name], found[f"{name}_ci95"], found["trials"])


def within_process(own: Measurement, row: Published) -> Answer:
    """The verdict over the trainings within one process, the worst of all processes."""
    found = own.cell["reproducibility"]
    if found["within_process"] is None:
        return "each process trained once: repeat_in_process=2 is needed"
    return Measured(found["within_process"], None, found["trials"])


def of_ensemble(name: str, scale: float = 1.0, alike: float = 0.0) -> Callable[[Measurement, Published], Answer]:
    """A quantity that takes the logits; `alike` is its value where all trials are equal, which is known exactly."""

    def measured(own: Measurement, row: Published) -> Answer:
        found = own.cell["ensemble"]
        if found is None:
            return "it needs every trial's logits: train.keep_logits=true"
        if found[name] is None:
            return found["why"] or "a trial gives the same logit for everything"
        ends = found[f"{name}_ci95"]
        interval = None if ends is None else (scale * ends[0], scale * ends[1])
        return _figure(scale * found[name], interval, found["trials"], alike)

    return measured


def _figure(value: float, interval: Interval | None, trials: int, alike: float = 0.0) -> Measured:
    """A figure whose interval has no width where all trials are alike: there is nothing that could vary."""
    return Measured(value, (value, value) if value == alike else interval, trials)


def _percent(interval: Sequence[float] | None) -> Interval | None:
    return None if interval is None else (100 * interval[0], 100 * interval[1])
