"""Calls: what one process saw of a module that it called many times on the same inputs (phase=calls)."""

from dataclasses import dataclass
from typing import Any

from runner.jsonfile import of_fields


@dataclass(frozen=True)
class Loop:
    """A loop of calls as people write it: the host's clock around it, and nothing in it that waits for the device.

    `host_s` is what that clock says at the loop's end, `done_s` what it says when the device is done too.
    """

    host_s: float
    done_s: float


@dataclass(frozen=True)
class ShapeCalls:
    """The calls on the inputs of one shape ("1x3x200x200"), in milliseconds.

    `first_ms` is the first call of the process on that shape by the host's clock, tuning included; `later_ms` the
    median of the later ones of the same loop; `call_ms` the median of warm calls by the device's clock. What too few
    calls can tell is None.
    """

    shape: str
    first_ms: float
    later_ms: float | None
    call_ms: float | None


@dataclass(frozen=True)
class Results:
    """The outputs, or the gradients, of all calls on the same inputs.

    `distinct` counts the results of one input that differ in any bit, over its `calls`; of several inputs it is the
    most. How far results lie from the first one of their input: `max_ulp` and `max_relative` element by element, as in
    runner.size; `relative` is ||result - first|| / ||first||. All three are the largest over calls, 0 where all are
    equal, None where they are no floating-point numbers. `float64_error` is ||first - exact|| / ||exact|| with the
    same module in float64 on the CPU, None where it is not known.
    """

    calls: int
    distinct: int
    max_ulp: int | None
    max_relative: float | None
    relative: float | None
    float64_error: float | None


@dataclass(frozen=True)
class Calls:
    """The calls of one trial: so many in each loop, on inputs of one or several shapes in turn.

    `cold` is the first loop of the process, `warm` the same loop again. `no_error` says why there is no float64_error.
    """

    times: int
    backward: bool
    cold: Loop
    warm: Loop
    shapes: list[ShapeCalls]
    outputs: Results
    gradients: Results | None
    no_error: str | None

    @classmethod
    def of(cls, found: Any) -> "Calls":
        """What record.json holds of it. Raises ValueError naming the field and what it holds."""
        if not isinstance(found, dict) or not isinstance(found.get("shapes"), list):
            raise ValueError("calls.shapes is missing")
        kinds: dict[str, Any] = {"cold": Loop, "warm": Loop, "outputs": Results}
        parts: dict[str, Any] = {name: of_fields(kinds[name], found.get(name), f"calls.{name}") for name in kinds}
        parts["shapes"] = [
            of_fields(ShapeCalls, one, f"calls.shapes.{index}") for index, one in enumerate(found["shapes"])
        ]
        if found.get("gradients") is not None:
            parts["gradients"] = of_fields(Results, found["gradients"], "calls.gradients")
        return of_fields(cls, found | parts, "calls")
