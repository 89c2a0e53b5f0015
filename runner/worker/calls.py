"""phase=calls: one module called many times on the same inputs, timed as people do it and as it should be done.

The order is the method. The first loop has the process's first calls of the module, so that start and tuning are in it;
the second is the same loop again. Both have the host's clock around them and nothing that waits for the device inside.
Then every call is timed by the device's clock, and only then results are looked at, for which the device is waited for.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from runner.calls import Calls, Loop, Results, ShapeCalls
from runner.worker.apart import apart
from runner.worker.call import tensors
from runner.worker.clock import Clock, read_bytes
from runner.worker.digest import lanes, text
from runner.worker.evaluate import wait
from runner.worker.probe import Probe
from runner.worker.train import AUTOCAST, autocast, laid_out

Call = Callable[[Tensor], tuple[list[Tensor], list[Tensor]]]  # the outputs and the gradients


@dataclass(frozen=True, eq=False)
class Called:
    """What the calls leave: their figures, the lanes of each call's results, and what is not finite in words.

    results: int64 (times, 2) on the CPU, with gradients (times, 4). `first_read_bytes` is what the first loop had read
    from the disk.
    """

    calls: Calls
    results: Tensor
    first_read_bytes: int | None
    not_finite: str | None

    def digests(self) -> tuple[str, dict[str, str]]:
        """The digest of all results in order, and that of the results of the first 1, 2, 4, 8, ... calls."""
        powers = [number for number in range(1, len(self.results) + 1) if number & (number - 1) == 0]
        return text(lanes([self.results])), {str(number): text(lanes([self.results[:number]])) for number in powers}


def call_many(
    model: nn.Module, inputs: list[Tensor], config: dict[str, Any], clock: Clock, probe: Probe, seed: int
) -> Called:
    """Call the model on the inputs in turn, each of another shape; `seed` is where random generators begin a call."""
    options, dtype = config["calls"], AUTOCAST.get(config["precision"]["name"])
    times, device = options["times"], inputs[0].device
    inputs = [_given(laid_out(one, dtype), options["backward"]) for one in inputs]
    above = _Above()
    call = partial(_call, model, dtype, above if options["backward"] else None)
    # Where a call is the module's and no more, nothing of ours stands around it.
    timed: Callable[[Tensor], Any] = call if dtype or options["backward"] else model
    before = read_bytes()
    cold, host_ms = as_written(timed, inputs, times, device)
    after = read_bytes()
    warm, _ = as_written(timed, inputs, times, device)
    for number in range(times):
        with clock.waiting():
            one = inputs[number % len(inputs)]
        with clock.step(tuple(one.shape)):
            timed(one)
    tallies, results = _compared(call, inputs, times, seed)
    no_error, errors = _errors(model, inputs, tallies, above, options)
    with probe.step(times + 1):
        call(inputs[0])
    figures = Calls(
        times=times,
        backward=options["backward"],
        cold=cold,
        warm=warm,
        shapes=_shapes(inputs, host_ms, clock),
        outputs=_results([tally.outputs for tally in tallies], errors[0]),
        gradients=_results([tally.gradients for tally in tallies], errors[1]) if options["backward"] else None,
        no_error=no_error,
    )
    read = None if before is None or after is None else after - before
    return Called(figures, results, read, _not_finite(tallies))


def as_written(
    call: Callable[[Tensor], Any], inputs: Sequence[Tensor], times: int, device: torch.device
) -> tuple[Loop, np.ndarray]:
    """The loop as people write it, and the host's time of each call in ms: float64 (times,).

    To note the time after a call takes the host a tenth of a microsecond.
    """
    wait(device)
    marks = [time.perf_counter()]
    for number in range(times):
        call(inputs[number % len(inputs)])
        marks.append(time.perf_counter())
    wait(device)
    done = time.perf_counter()
    return Loop(marks[-1] - marks[0], done - marks[0]), np.diff(marks) * 1000


def _given(inputs: Tensor, backward: bool) -> Tensor:
    return inputs.detach().requires_grad_() if backward and inputs.is_floating_point() else inputs


class _Above:
    """The gradient that comes from behind the module: random, the same in every process, made at its first use."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], Tensor] = {}

    def of(self, output: Tensor) -> Tensor:
        """That of an output, by its shape."""
        shape = tuple(output.shape)
        if shape not in self._made:
            generator = torch.Generator(output.device).manual_seed(len(self._made))
            self._made[shape] = torch.empty_like(output).normal_(generator=generator).detach()
        return self._made[shape]

    def wide(self) -> "_Above":
        """The same in float64 on the CPU."""
        copy = _Above()
        copy._made = {shape: made.cpu().double() for shape, made in self._made.items()}
        return copy


def _call(
    model: nn.Module, dtype: torch.dtype | None, above: _Above | None, inputs: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    with autocast(inputs.device, dtype):
        outputs = tensors(model(inputs))
    if above is None:
        return outputs, []
    differentiable = [output for output in outputs if output.requires_grad]
    wanted = [one for one in (*model.parameters(), inputs) if one.requires_grad]
    found = torch.autograd.grad(differentiable, wanted, list(map(above.of, differentiable)), allow_unused=True)
    return outputs, [gradient for gradient in found if gradient is not None]


@dataclass
class _Tally:
    """The results of one kind that calls on one input gave: the first, the lanes of all, and how far off any was."""

    first: list[Tensor] = field(default_factory=list)
    seen: set[tuple[int, ...]] = field(default_factory=set)
    calls: int = 0
    apart: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))

    def add(self, found: list[Tensor]) -> Tensor:
        """Count in one call's; returns its lanes. Only what was not seen before is compared."""
        words = lanes(found).cpu()
        key = tuple(words.tolist())
        if not self.calls:
            self.first = [one.detach().clone() for one in found]
        elif key not in self.seen:
            self.apart = torch.maximum(self.apart, apart(self.first, found).cpu())
        self.seen.add(key)
        self.calls += 1
        return words


@dataclass
class _Tallies:
    """Those of one input; `random`: a call has drawn from a random generator."""

    outputs: _Tally = field(default_factory=_Tally)
    gradients: _Tally = field(default_factory=_Tally)
    random: bool = False


def _compared(call: Call, inputs: Sequence[Tensor], times: int, seed: int) -> tuple[list[_Tallies], Tensor]:
    """Call again and look at all results. Random generators begin each call alike: what differs has other reasons."""
    tallies, results = [_Tallies() for _ in inputs], []
    for number in range(times):
        one, tally = inputs[number % len(inputs)], tallies[number % len(inputs)]
        torch.manual_seed(seed)
        before = _generators(one.device)
        outputs, gradients = call(one)
        tally.random |= not all(map(torch.equal, before, _generators(one.device)))
        words = tally.outputs.add(outputs)
        results.append(torch.cat([words, tally.gradients.add(gradients)]) if gradients else words)
    return tallies, torch.stack(results)


def _generators(device: torch.device) -> list[Tensor]:
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def _errors(
    model: nn.Module,
    inputs: Sequence[Tensor],
    tallies: Sequence[_Tallies],
    above: _Above,
    options: dict[str, Any],
) -> tuple[str | None, list[float | None]]:
    """Why the results were not compared with float64, or how far outputs and gradients lie from it."""
    nothing: list[float | None] = [None, None]
    if not options["float64"]:
        return "calls.float64=false", nothing
    if any(tally.random for tally in tallies):
        return "the module draws random numbers", nothing
    try:
        exact = [_exactly(model, one, above, options["backward"]) for one in inputs]
    except Exception as error:  # a module that knows no float64, memory that does not suffice: each has its own type
        return (str(error).strip() or type(error).__name__).splitlines()[0], nothing
    return None, [
        _relative([tally.outputs.first for tally in tallies], [outputs for outputs, _ in exact]),
        _relative([tally.gradients.first for tally in tallies], [gradients for _, gradients in exact]),
    ]


def _exactly(model: nn.Module, inputs: Tensor, above: _Above, backward: bool) -> tuple[list[Tensor], list[Tensor]]:
    """The results of a copy of the model in float64 on the CPU, with the same gradient from behind."""
    wide = deepcopy(model).cpu().double()
    given = inputs.detach().cpu()
    given = _given(given.double() if given.is_floating_point() else given, backward)
    return _call(wide, None, above.wide() if backward else None, given)


def _relative(seen: list[list[Tensor]], exact: list[list[Tensor]]) -> float | None:
    """||seen - exact|| / ||exact|| over all tensors of all inputs; None without any."""
    off = norm = 0.0
    for found, wanted in zip(seen, exact, strict=True):
        for one, other in zip(found, (tensor.detach() for tensor in wanted), strict=True):
            if one.is_floating_point():
                off += float((one.cpu().double() - other).square().sum())
                norm += float(other.square().sum())
    return float(np.sqrt(off / norm)) if norm else None


def _results(tallies: Sequence[_Tally], error: float | None) -> Results:
    off = torch.stack([tally.apart for tally in tallies]).amax(0).tolist()
    floating = any(one.is_floating_point() for one in tallies[0].first)
    return Results(
        calls=min(tally.calls for tally in tallies),
        distinct=max(len(tally.seen) for tally in tallies),
        max_ulp=int(off[0]) if floating else None,
        max_relative=off[1] if floating else None,
        relative=off[2] if floating else None,
        float64_error=error,
    )


def _shapes(inputs: Sequence[Tensor], host_ms: np.ndarray, clock: Clock) -> list[ShapeCalls]:
    """The calls by shape: the host's time of the first loop, and the device's of the timed one."""
    count, call_ms = len(inputs), clock.read().step_ms
    return [
        ShapeCalls(
            shape="x".join(map(str, one.shape)),
            first_ms=float(host_ms[place]),
            later_ms=_median(host_ms[place + count :: count]),
            call_ms=_median(call_ms[place::count]),
        )
        for place, one in enumerate(inputs)
    ]


def _median(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None


def _not_finite(tallies: Sequence[_Tallies]) -> str | None:
    for kind in ("outputs", "gradients"):
        firsts = [one for tally in tallies for one in getattr(tally, kind).first]
        if not all(bool(torch.isfinite(one).all()) for one in firsts):
            return f"{kind} are not finite"
    return None
