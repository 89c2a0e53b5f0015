"""Quantities of calls, of the kernels that ran, of PyTorch's own flags, and verdicts of comparisons in a word."""

from collections.abc import Callable, Sequence
from math import exp, log
from statistics import median
from typing import Any

from runner.analysis.calls import counting, loop_of
from runner.analysis.figure import Figure, mean_interval
from runner.analysis.first_steps import LEAST_TUNING_S, cold_trials
from runner.analysis.measured import Answer, Measured, Measurement
from runner.analysis.ratio import compare, decide, pairs_of
from runner.mode import mode_name
from runner.recipe import Published

NO_CALLS = "there are no calls: phase=calls is needed"
OfOne = Callable[[Measurement, Published], Answer]
OfTwo = Callable[[Measurement, Measurement], Answer]


def call_time(own: Measurement, row: Published) -> Answer:
    """A warm call by the device's clock, in ms."""
    figure = own.cell["speed"]["step_ms"]
    return "no steady call time" if figure is None else Measured(figure["mean"], figure["ci95"], figure["n"])


def loop(which: str, until: str) -> OfOne:
    """A loop of calls in seconds, see runner.analysis.calls.loop_of; over the trials that `counting` gives."""

    def figure(own: Measurement, row: Published) -> Answer:
        values = _loops(own, which, until)
        return _mean(values) if values else NO_CALLS

    return figure


def loop_ratio(which: str, until: str, percent: bool = False) -> OfTwo:
    """The same of one cell over that of the other, paired by round; `percent`: how many % more."""

    def figure(own: Measurement, other: Measurement) -> Answer:
        cold = cold_trials(own.sample.records) | cold_trials(other.sample.records)
        pairs = [
            (one.number, mine, yours)
            for one, two in pairs_of(own.sample, other.sample)
            if (mine := loop_of(one, which, until)) is not None and (yours := loop_of(two, which, until)) is not None
        ]
        usual = [(mine, yours) for number, mine, yours in pairs if number not in cold]
        if not usual:
            return "in every round a process began cold" if pairs else NO_CALLS
        return _scaled(_log_ratio(usual), (lambda ratio: 100 * (ratio - 1)) if percent else float)

    return figure


def loop_verdict(own: Measurement, other: Measurement) -> Answer:
    """Whether the first loop, until the device is done, takes longer than the other cell's: a word."""
    ratio = loop_ratio("cold", "done_s")(own, other)
    if isinstance(ratio, str) or ratio.ci95 is None:
        return ratio if isinstance(ratio, str) else "one round has no interval"
    low, high = ratio.ci95
    note = f"{float(ratio.value):.3f} [{low:.3f}, {high:.3f}]"
    return Measured(decide(ratio.ci95, own.margin), None, ratio.trials, note=note)


def step_verdict(own: Measurement, other: Measurement) -> Answer:
    """Whether a steady step takes longer than the other cell's: a word."""
    ratio = compare(own.sample, other.sample, 1, own.margin, own.looks)
    if ratio.value is None or ratio.ci95 is None:
        return str(ratio.why)
    low, high = ratio.ci95
    return Measured(ratio.verdict, None, ratio.pairs, note=f"{ratio.value:.3f} [{low:.3f}, {high:.3f}]")


def first_call(own: Measurement, row: Published) -> Answer:
    """The process's first call by the host's clock, in seconds, over the trials that `counting` gives."""
    values = [record.calls.shapes[0].first_ms / 1000 for record in counting(own.sample) if record.calls]
    return _mean(values) if values else NO_CALLS


def new_shape_call(own: Measurement, row: Published) -> Answer:
    """The first call on a further input shape by the host's clock, in ms: the mean over shapes."""
    found = [record.calls.shapes[1:] for record in own.sample.timed if record.calls]
    values = [sum(one.first_ms for one in shapes) / len(shapes) for shapes in found if shapes]
    return _mean(values) if values else "there is one input shape"


def tunes_shapes(own: Measurement, other: Measurement) -> Answer:
    """Whether first calls on further shapes take longer than the other cell's, by what tuning takes at least."""
    pairs = [(one.speed, two.speed) for one, two in pairs_of(own.sample, other.sample) if one.speed and two.speed]
    excess = [(sum(one.new_shapes_ms) - sum(two.new_shapes_ms)) / 1000 for one, two in pairs if one.new_shapes_ms]
    interval = mean_interval(excess)
    if interval is None:
        return "two rounds with several input shapes are needed"
    shapes = max(len(one.new_shapes_ms) for one, _ in pairs)
    tunes = interval[0] > 0 and median(excess) >= LEAST_TUNING_S
    return Measured("yes" if tunes else "no", None, len(excess), note=_excess(median(excess), interval, shapes))


def _excess(seconds: float, interval: Sequence[float], shapes: int) -> str:
    return f"{seconds:.3g} s [{interval[0]:.3g}, {interval[1]:.3g}] more over {shapes} further shapes"


def repeats(own: Measurement, row: Published) -> Answer:
    """Whether all results of one input in one process are equal, in every trial: "bitwise" or "differs"."""
    found = _kinds(own)
    if not found:
        return NO_CALLS
    calls, distinct = found[0]["calls"], max(one["distinct"] for one in found)
    word = "bitwise" if distinct == 1 else "differs"
    note = f"all {calls:,} calls" if distinct == 1 else f"up to {distinct:,} different of {calls:,} calls"
    return Measured(word, None, found[0]["trials"], note=note)


def distinct_results(own: Measurement, row: Published) -> Answer:
    """How many different results the calls of one input had in a process, the most of any trial."""
    found = _kinds(own)
    if not found:
        return NO_CALLS
    calls, distinct = found[0]["calls"], max(one["distinct"] for one in found)
    word = {1: "1 of n", calls: "n of n"}.get(distinct, "some of n")
    return Measured(word, None, found[0]["trials"], note=f"{distinct:,} of {calls:,} calls")


def largest(name: str) -> OfOne:
    """The largest difference of results of one input within a process: "max_ulp" or "relative"."""

    def figure(own: Measurement, row: Published) -> Answer:
        found = [one for one in _kinds(own) if one[name] is not None]
        if not found:
            return NO_CALLS
        value = float(max(one[name] for one in found))
        return Measured(value, (value, value), found[0]["trials"])  # what was seen, of all calls of all trials

    return figure


def float64_error(own: Measurement, row: Published) -> Answer:
    """How far the gradients, or without calls.backward the outputs, lie from float64."""
    errors = _errors(own)
    return _mean(list(errors.values())) if errors else _why_no_error(own)


def float64_error_ratio(own: Measurement, other: Measurement) -> Answer:
    """That of one cell over that of the other, paired by round."""
    mine, yours = _errors(own), _errors(other)
    if not mine or not yours:
        return _why_no_error(other if mine else own)
    pairs = [(mine[number], yours[number]) for number in mine if number in yours]
    if not pairs:
        return "no round has both cells"
    return _log_ratio(pairs) if all(min(pair) > 0 for pair in pairs) else "an error is exactly 0"


def most_exact(own: Sequence[Measurement]) -> Answer:
    """The mode whose results lie nearest to float64, of cells that differ in nothing but mode; ties are all named."""
    errors = {mode_name(one.sample.cell.config["cudnn"]): _errors(one) for one in own}
    if len(errors) < len(own) or len(own) < 2:
        return "one cell of each of several modes is needed"
    if not all(errors.values()):
        return _why_no_error(next(one for one in own if not _errors(one)))
    means = {mode: sum(found.values()) / len(found) for mode, found in errors.items()}
    least = min(means, key=lambda mode: means[mode])
    tied = [mode for mode in errors if mode == least or _not_apart(errors[mode], errors[least])]
    note = ", ".join(f"{mode} {value:.3g}" for mode, value in means.items())
    return Measured(" or ".join(tied), None, min(map(len, errors.values())), note=note)


def ran_cudnn(own: Measurement, row: Published) -> Answer:
    """Whether any operation of a call ran through cuDNN: "yes" or "no"."""
    found = own.cell.get("calls")
    if not found or found["cudnn"] is None:
        return "no kernels were looked at"
    return Measured("yes" if found["cudnn"] else "no", None, own.cell["n"], note=", ".join(found["cudnn"]) or None)


def same_kernels(own: Measurement, row: Published) -> Answer:
    """Whether all processes ran the same kernels: "yes" or "no"."""
    found = own.cell.get("kernels")
    if not found or "choices" not in found:
        return "no kernels were looked at"
    if found["trials"] < 2:
        return "one trial has nothing to compare with"
    spread = own.cell["speed"]["spread"]
    note = f"the slowest process's call takes {spread:.3f} times the fastest's" if spread else None
    return Measured("no" if found["choices"] or found["unlike"] else "yes", None, found["trials"], note=note)


def same_bits(own: Measurement, other: Measurement) -> Answer:
    """Whether all trials of both cells ended with the same bits: "yes" or "no"."""
    digests = [record.digests.final for one in (own, other) for record in one.sample.finished if record.digests]
    trials = [len(one.sample.finished) for one in (own, other)]
    if not min(trials):
        return "no trial finished in one of the cells"
    return Measured("no" if len(set(digests)) > 1 else "yes", None, min(trials), note=f"{len(set(digests))} different")


def default_mode(own: Measurement, row: Published) -> Answer:
    """The mode in which PyTorch is before anybody has set a flag, as each process read it."""
    modes = {mode_name(record.flags["default"]) for record in own.sample.finished if "default" in record.flags}
    if len(modes) != 1:
        return "the trials did not read it"
    return Measured(modes.pop(), None, len(own.sample.finished))


def _kinds(own: Measurement) -> list[dict[str, Any]]:
    found = own.cell.get("calls")
    return [one for one in (found["outputs"], found["gradients"]) if one] if found else []


def _errors(own: Measurement) -> dict[int, float]:
    """The distance from float64 by round; none where a trial lacks it."""
    found = {record.number: record.calls for record in own.sample.finished if record.calls}
    values = {number: (one.gradients or one.outputs).float64_error for number, one in found.items()}
    known = {number: value for number, value in values.items() if value is not None}
    return known if len(known) == len(values) else {}


def _why_no_error(own: Measurement) -> str:
    found = own.cell.get("calls")
    return f"not compared with float64: {found['no_error']}" if found and found["no_error"] else NO_CALLS


def _not_apart(errors: dict[int, float], others: dict[int, float]) -> bool:
    interval = mean_interval([error - others[number] for number, error in errors.items() if number in others])
    return interval is None or interval[0] <= 0 <= interval[1]


def _loops(own: Measurement, which: str, until: str) -> list[float]:
    values = [loop_of(record, which, until) for record in counting(own.sample)]
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> Answer:
    figure = Figure.of(values)
    return "no trial counts" if figure.mean is None else Measured(figure.mean, figure.ci95, figure.n)


def _log_ratio(pairs: Sequence[tuple[float, float]]) -> Measured:
    """The ratio from pairs of positive values: exp of the mean of the logarithms, with its t interval."""
    logs = [log(one / other) for one, other in pairs]
    interval = mean_interval(logs)
    value = exp(sum(logs) / len(logs))
    return Measured(value, interval and (exp(interval[0]), exp(interval[1])), len(logs))


def _scaled(found: Measured, scale: Callable[[float], float]) -> Measured:
    interval = found.ci95 and (scale(found.ci95[0]), scale(found.ci95[1]))
    return Measured(scale(float(found.value)), interval, found.trials)


OF_TWO: dict[str, OfTwo] = {
    "loop_cold_ratio": loop_ratio("cold", "host_s"),
    "loop_cold_overhead": loop_ratio("cold", "host_s", percent=True),
    "loop_warm_overhead": loop_ratio("warm", "host_s", percent=True),
    "loop_done_ratio": loop_ratio("cold", "done_s"),
    "loop_verdict": loop_verdict,
    "step_verdict": step_verdict,
    "tunes_shapes": tunes_shapes,
    "float64_error_ratio": float64_error_ratio,
    "same_bits": same_bits,
}
OF_ONE: dict[str, OfOne] = {
    "call_time": call_time,
    "loop_cold": loop("cold", "host_s"),
    "loop_warm": loop("warm", "host_s"),
    "loop_done": loop("cold", "done_s"),
    "first_call": first_call,
    "new_shape_call": new_shape_call,
    "repeats": repeats,
    "distinct_results": distinct_results,
    "ulp_difference": largest("max_ulp"),
    "relative_difference": largest("relative"),
    "float64_error": float64_error,
    "ran_cudnn": ran_cudnn,
    "same_kernels": same_kernels,
    "default_mode": default_mode,
}
