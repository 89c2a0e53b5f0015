"""Records of many calls for tests: what is in them is known, so it can be looked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from factory import make_cell, make_record

from runner.analysis.calls import call_figures
from runner.analysis.environment import Environment
from runner.analysis.looks import Looks
from runner.analysis.measured import Measurement
from runner.analysis.sample import Sample, baselines
from runner.calls import Calls, Loop, Results, ShapeCalls
from runner.kernel_use import KernelCall, KernelUse

SETTINGS: dict[str, Any] = {
    "phase": "calls",
    "calls": {"times": 100, "backward": False, "float64": True, "kernels": True},
}


def make_results(**changes: Any) -> Results:
    """The results of 100 equal calls; keyword arguments replace fields."""
    fields: dict[str, Any] = {"calls": 100, "distinct": 1, "max_ulp": 0, "max_relative": 0.0, "relative": 0.0}
    return Results(**fields | {"float64_error": 1e-7} | changes)


def make_calls(cold_s: float = 1.2, warm_s: float = 0.1, **changes: Any) -> Calls:
    """What a trial saw: loops of so many seconds, done 0.4 s later; keyword arguments replace fields."""
    fields: dict[str, Any] = {
        "times": 100,
        "backward": False,
        "cold": Loop(cold_s, cold_s + 0.4),
        "warm": Loop(warm_s, warm_s + 0.4),
        "shapes": [ShapeCalls("1x3x200x200", 500.0, 0.02, 4.0)],
        "outputs": make_results(),
        "gradients": None,
        "no_error": None,
    }
    return Calls(**fields | changes)


def calling(mode: str, found: Sequence[Calls], uses: Sequence[KernelUse] = (), **speed: Any) -> Measurement:
    """A cell of a mode with a trial for each of these; keyword arguments are what the summary says of its speed."""
    cell = make_cell(mode, **SETTINGS)
    records = []
    for number, calls in enumerate(found):
        record = make_record(cell, number, calls=calls)
        assert record.speed
        first, *later = (one.first_ms for one in calls.shapes)
        speed_of = replace(record.speed, step_ms=4.0, first_step_ms=first, new_shapes_ms=later)
        records.append(replace(record, speed=speed_of))
    sample = Sample(cell, mode, Environment.of(records[0]), records, baselines([cell])[cell.id])
    summary = {"speed": {"spread": 1.1} | speed, "n": len(found), **call_figures(sample, uses)}
    return Measurement(sample, summary, 0.02, Looks.of([20]))


def make_use(*calls: tuple[str, str], number: int = 0) -> KernelUse:
    """The kernels of a call: pairs of an operation's name and its kernel."""
    operations = tuple(KernelCall(name, "", "forward", (), (kernel,)) for name, kernel in calls)
    return KernelUse(make_cell("default", **SETTINGS).id, number, 101, "NVIDIA H200", operations, None)
