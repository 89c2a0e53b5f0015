"""Calls: what the trials of a cell saw of a module that each called many times (phase=calls)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.analysis.figure import Figure
from runner.analysis.first_steps import cold_trials
from runner.analysis.sample import Sample
from runner.calls import Calls, Loop, Results
from runner.kernel_use import KernelUse
from runner.record import Record


@dataclass(frozen=True)
class LoopFigures:
    """A loop as people write it, in seconds: by the host's clock at its end, and when the device is done too."""

    host_s: Figure
    done_s: Figure


@dataclass(frozen=True)
class ShapeFigures:
    """The calls on one input shape in milliseconds, means over trials, as runner.calls.ShapeCalls has them."""

    shape: str
    first_ms: float | None
    later_ms: float | None
    call_ms: float | None


@dataclass(frozen=True)
class ResultFigures:
    """Outputs or gradients over trials: `differing` of the `trials` saw different results of one input in one process.

    `calls` of one input were compared in a trial, `distinct` is the most of different ones that any trial saw; the
    three sizes of a difference are the largest of any trial, `float64_error` is the mean.
    """

    trials: int
    differing: int
    calls: int
    distinct: int
    max_ulp: int | None
    max_relative: float | None
    relative: float | None
    float64_error: Figure


@dataclass(frozen=True)
class CallFigures:
    """The calls of a cell. Times are over the trials whose speed counts; loops without the trials that began cold.

    `cudnn` are the operations of a call that ran through cuDNN, None where no kernels were looked at.
    """

    times: int
    backward: bool
    cold: LoopFigures
    warm: LoopFigures
    shapes: list[ShapeFigures]
    outputs: ResultFigures
    gradients: ResultFigures | None
    no_error: str | None
    cudnn: list[str] | None


def call_figures(sample: Sample, uses: Sequence[KernelUse]) -> dict[str, Any]:
    """What summary.json holds of a cell's calls under "calls"; nothing for a cell that does not call."""
    found = [record.calls for record in sample.finished if record.calls]
    if not found:
        return {}
    first, gradients = found[0], [one.gradients for one in found if one.gradients]
    loops, timed = ([record.calls for record in part if record.calls] for part in (counting(sample), sample.timed))
    figures = CallFigures(
        times=first.times,
        backward=first.backward,
        cold=_loop([one.cold for one in loops]),
        warm=_loop([one.warm for one in loops]),
        shapes=[_shape(timed, place, one.shape) for place, one in enumerate(first.shapes)],
        outputs=_results([one.outputs for one in found]),
        gradients=_results(gradients) if gradients else None,
        no_error=first.no_error,
        cudnn=_cudnn(uses) if uses else None,
    )
    return {"calls": asdict(figures)}


def counting(sample: Sample) -> list[Record]:
    """The trials whose first calls count: those that did not begin cold, all where every one did."""
    cold = cold_trials(sample.records)
    called = [record for record in sample.timed if record.calls]
    return [record for record in called if record.number not in cold] or called


def _loop(loops: Sequence[Loop]) -> LoopFigures:
    host, done = (Figure.of([getattr(one, name) for one in loops], lower=0.0) for name in ("host_s", "done_s"))
    return LoopFigures(host, done)


def _shape(found: Sequence[Calls], place: int, shape: str) -> ShapeFigures:
    own = [one.shapes[place] for one in found]
    first, later, call = ([getattr(one, name) for one in own] for name in ("first_ms", "later_ms", "call_ms"))
    return ShapeFigures(shape, Figure.of(first).mean, Figure.of(later).mean, Figure.of(call).mean)


def _results(found: Sequence[Results]) -> ResultFigures:
    return ResultFigures(
        trials=len(found),
        differing=sum(one.distinct > 1 for one in found),
        calls=min(one.calls for one in found),
        distinct=max(one.distinct for one in found),
        max_ulp=_largest(found, lambda one: one.max_ulp),
        max_relative=_largest(found, lambda one: one.max_relative),
        relative=_largest(found, lambda one: one.relative),
        float64_error=Figure.of([one.float64_error for one in found], lower=0.0),
    )


def _largest(found: Sequence[Results], value: Callable[[Results], Any]) -> Any:
    return max((known for one in found if (known := value(one)) is not None), default=None)


def _cudnn(uses: Sequence[KernelUse]) -> list[str]:
    """By their names, "aten::_cudnn_rnn", or by those of their kernels; in the order in which they were done."""
    calls = (call for use in uses for call in use.operations)
    return list(dict.fromkeys(call.name for call in calls if "cudnn" in call.name or _by_cudnn(call.kernels)))


def _by_cudnn(kernels: Sequence[str]) -> bool:
    return any("cudnn" in kernel for kernel in kernels)


def loop_of(record: Record, which: str, until: str) -> float | None:
    """Seconds of a trial's loop: `which` is "cold" or "warm", `until` "host_s" or "done_s"."""
    return None if record.calls is None else float(getattr(getattr(record.calls, which), until))
