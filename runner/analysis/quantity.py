"""Quantities: what a study measured of that which a recipe's row was published about."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runner.analysis import call_quantities as calls
from runner.analysis import pair_quantities as pairs
from runner.analysis.figure import Figure, Interval, sd_interval
from runner.analysis.first_steps import cold_trials
from runner.analysis.measured import Answer, Measured, Measurement
from runner.analysis.ratio import compare, step_times
from runner.analysis.sample import Sample
from runner.analysis.spread import range_interval, sd_error
from runner.cell import flatten
from runner.mode import mode_name
from runner.recipe import Published
from runner.record import Record
from runner.seeds import STREAMS


def chosen(measurements: Sequence[Measurement], words: dict[str, Any]) -> list[Measurement]:
    """Those whose settings are what the words say: {"cudnn": "benchmark", "model.depth": 18, "seeds": "init"}."""
    return [one for one in measurements if words.items() <= settings_of(one.sample.cell.config).items()]


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """Settings by dotted key, and a group by its name; what no word can be equal to is left out."""
    flat = flatten(config)
    names = {key.removesuffix(".name"): value for key, value in flat.items() if key.endswith(".name")}
    varied = config.get("seeds", {}).get("vary", [])
    seeds = "all" if set(varied) == set(STREAMS) else "+".join(varied) or "fixed"
    plain = {key: value for key, value in flat.items() if not isinstance(value, list | dict)}
    return plain | names | {"cudnn": mode_name(config["cudnn"]), "seeds": seeds}


def quantity(row: Published, measurements: Sequence[Measurement]) -> Answer:
    """The row's quantity as a study measured it, or why it cannot say: a sentence's end, after "because"."""
    own, other = chosen(measurements, row.cell), chosen(measurements, row.over)
    if row.quantity in EXTREMES:
        return _extreme(own, EXTREMES[row.quantity])
    if row.quantity == "most_exact":
        return calls.most_exact(own)
    for found in [own, other] if row.over else [own]:
        if len(found) != 1:
            labels = "; ".join(one.sample.label for one in found)
            return f"{len(found)} cells fit: {labels}" if found else "the study has no such cell"
    if row.over:
        return _OF_TWO[row.quantity](own[0], other[0])
    if not own[0].sample.finished:
        return "no trial finished"
    return _FIGURES[row.quantity](own[0], row)


def _step_time_ratio(own: Measurement, other: Measurement) -> Answer:
    return _ratio(own, own.sample, other.sample)


def _training_time_ratio(own: Measurement, other: Measurement) -> Answer:
    return _ratio(own, _whole_trainings(own.sample), _whole_trainings(other.sample))


def _step_time_overhead(own: Measurement, other: Measurement) -> Answer:
    ratio = _step_time_ratio(own, other)
    if isinstance(ratio, str) or isinstance(ratio.value, str):
        return ratio
    return Measured(100 * (ratio.value - 1), _scaled(ratio.ci95, lambda end: 100 * (end - 1)), ratio.trials)


def _ratio(own: Measurement, sample: Sample, other: Sample) -> Answer:
    ratio = compare(sample, other, 1, own.margin, own.looks)
    if ratio.value is None:
        return str(ratio.why)
    trials = ratio.pairs or min(len(step_times(one.timed)) for one in (sample, other))
    return Measured(ratio.value, ratio.ci95, trials)


def _whole_trainings(sample: Sample) -> Sample:
    """The sample with the time of the whole loop, evaluations between steps included, in the place of a step's."""
    return replace(sample, records=list(map(_whole_training, sample.records)))


def _whole_training(record: Record) -> Record:
    speed = record.speed
    return replace(record, speed=replace(speed, step_ms=1000 * speed.train_s)) if speed else record


def _autotune(own: Measurement, row: Published) -> Answer:
    speed = own.cell["speed"]
    if speed["autotune_s"] is None:
        return "what tuning took is known only of a mode that tunes, beside default (F,F), on CUDA"
    return Measured(speed["autotune_s"], speed["autotune_s_ci95"], own.cell["n"])


def _first_step(own: Measurement, row: Published) -> Answer:
    cold = cold_trials(own.sample.records)
    times = [one.speed.first_step_ms for one in own.sample.timed if one.speed and one.number not in cold]
    return _mean(times, "no first step that counts") if times else "every first step was cold"


def _accuracy_mean(own: Measurement, row: Published) -> Answer:
    return _of_values(own, "accuracy", 100, lambda values: _mean(values, ""))


def _accuracy_sd(own: Measurement, row: Published) -> Answer:
    return _of_values(own, "accuracy", 100, lambda values: _sd(values, row.ddof))


def _cross_entropy_sd(own: Measurement, row: Published) -> Answer:
    return _of_values(own, "loss", 1, lambda values: _sd(values, row.ddof))


def _accuracy_range(own: Measurement, row: Published) -> Answer:
    return _of_values(own, "accuracy", 100, _range)


def _range(values: list[float]) -> Answer:
    return Measured(max(values) - min(values), range_interval(values), len(values))


def _of_values(own: Measurement, metric: str, scale: float, figure: Callable[[list[float]], Answer]) -> Answer:
    values = [record.metrics.get(metric) for record in own.sample.finished]
    known = [scale * value for value in values if value is not None]
    return figure(known) if known and len(known) == len(values) else f"not every trial has a finite {metric}"


def _mean(values: list[float], none: str) -> Answer:
    figure = Figure.of(values)
    return none if figure.mean is None else Measured(figure.mean, figure.ci95, figure.n)


def _sd(values: list[float], ddof: int) -> Answer:
    """The sd, dividing by n - ddof; the interval is that of the spread itself, whichever way it is estimated."""
    if len(values) < 2:
        return "one trial has no sd"
    sd = float(np.std(values, ddof=ddof)) if np.ptp(values) else 0.0
    return Measured(sd, sd_interval(values), len(values), sd_error(values, ddof))


def _distinct_weights(own: Measurement, row: Published) -> Answer:
    found = own.cell["reproducibility"]
    n, distinct = found["trials"], found["unique_weights"]
    if n < 2:
        return "one trial has nothing to compare with"
    return Measured({1: "1 of n", n: "n of n"}.get(distinct, "some of n"), None, n)


def _verdict(own: Measurement, row: Published) -> Answer:
    found = own.cell["reproducibility"]
    if found["verdict"] in (None, "single"):
        return "one trial has nothing to compare with"
    return Measured(found["verdict"], None, found["trials"])


def _extreme(own: Sequence[Measurement], sign: int) -> Answer:
    """The mode that takes the least time a step (sign 1) or the most (-1), of cells that differ in nothing but mode."""
    timed = [(one, step_times(one.sample.timed)) for one in own]
    modes = {mode_name(one.sample.cell.config["cudnn"]) for one in own}
    if len(modes) < len(own) or len(own) < 2:
        return "one cell of each of several modes is needed"
    if not all(times for _, times in timed):
        return "not every mode has a steady step time"
    first, *others = [one for one, _ in sorted(timed, key=lambda pair: sign * float(np.mean(np.log(pair[1]))))]
    told = [(one, compare(one.sample, first.sample, len(others), one.margin, one.looks)) for one in others]
    beyond = "slower" if sign > 0 else "faster"
    tied = [first, *(one for one, ratio in told if ratio.verdict != beyond)]
    words = " or ".join(mode_name(one.sample.cell.config["cudnn"]) for one in tied)
    return Measured(words, None, min(len(times) for _, times in timed))


def _scaled(interval: Sequence[float] | None, scale: Callable[[float], float]) -> Interval | None:
    return None if interval is None else (scale(interval[0]), scale(interval[1]))


EXTREMES = {"fastest": 1, "slowest": -1}
_OF_TWO: dict[str, Callable[[Measurement, Measurement], Answer]] = {
    "step_time_ratio": _step_time_ratio,
    "step_time_overhead": _step_time_overhead,
    "training_time_ratio": _training_time_ratio,
    **calls.OF_TWO,
    "disagreement_with": pairs.disagreement_with,
}
_FIGURES: dict[str, Callable[[Measurement, Published], Answer]] = {
    "autotune": _autotune,
    "first_step": _first_step,
    "accuracy_mean": _accuracy_mean,
    "accuracy_sd": _accuracy_sd,
    "accuracy_range": _accuracy_range,
    "cross_entropy_sd": _cross_entropy_sd,
    "disagreement": pairs.disagreement,
    "weight_distance": pairs.weight_distance,
    "unit_weight_distance": pairs.unit_weight_distance,
    "ensemble_gain": pairs.of_ensemble("gain", scale=100),
    "independent_errors_sd": pairs.of_ensemble("independent_sd", scale=100),
    "pearson_correlation": pairs.of_ensemble("pearson", alike=1.0),
    "spearman_correlation": pairs.of_ensemble("spearman", alike=1.0),
    "within_process": pairs.within_process,
    "distinct_weights": _distinct_weights,
    "verdict": _verdict,
    **calls.OF_ONE,
}
