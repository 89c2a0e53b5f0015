"""A record: what one trial left on disk. It holds raw facts; every statistic is derived from it elsewhere."""

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from runner.calls import Calls
from runner.jsonfile import of_fields, read_fields, short, write_json
from runner.trial import Trial

SCHEMA = 1


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


Outcome = Literal["finished", "failed", "timed_out", "diverged", "interrupted"]
Plain = str | int | float | bool | None


@dataclass(frozen=True)
class Digests:
    """128-bit digests over raw bits, as 32 hexadecimal digits; "" of what there is not: losses and figures of calls.

    `data` and `losses` cover all steps together (per step they are in series.npz); `final` covers the weights at the
    end, `steps` those after steps 1, 2, 4, 8, ..., with phase=infer all outputs up to there, with phase=calls all
    results; `metrics` covers the bits of the evaluation figures, `predictions` those of the predicted classes (or
    values) over the whole test set.
    """

    initial: str
    data: str
    losses: str
    final: str
    metrics: str
    predictions: str
    steps: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Speed:
    """Times of one trial. A steady figure that too few steps can give is None.

    `step_ms` is the median step after the first of each input shape, `first_step_ms` the very first step,
    `new_shapes_ms` the first step of every further shape, `enqueue_ms` what the host needed to hand over a steady
    step, `wait_ms` the median wait for data, all in milliseconds; `train_s` is the whole loop.

    `lag_ms` is for how long a CUDA device still worked on a steady step when the host had handed it over: close to 0
    where it waits for the host. `synchronizing` is how many operations of a step PyTorch saw make the host wait for the
    device. Both are None in records made before they were measured, and on other devices.

    `p99_ms` is the 99th percentile of the steady steps, of at least 100; `steps_s` all steps together, as the device
    counts them; `compile_s` what torch.compile took of them. `first_step_read_bytes` is what the process had read from
    the disk during the first step: much of it where a machine loads kernels for the first time since its start.
    `energy_j_per_sample` is the device's whole energy over the steps after the first one.

    With phase=infer a step is one batch answered: `step_ms` is its latency on an idle device, `samples_per_s` the
    throughput with the next batch always waiting. With phase=calls a step is one warm call; the first steps are the
    process's first calls by the host's clock, and `steps_s` is its first loop until the device is done.
    """

    steps: int
    first_step_ms: float
    step_ms: float | None
    enqueue_ms: float | None
    wait_ms: float | None
    new_shapes_ms: list[float]
    samples_per_s: float | None
    evaluate_samples_per_s: float | None
    build_s: float
    train_s: float
    evaluate_s: float
    p99_ms: float | None = None
    steps_s: float | None = None
    compile_s: float | None = None
    first_step_read_bytes: int | None = None
    energy_j_per_sample: float | None = None
    lag_ms: float | None = None
    synchronizing: int | None = None


@dataclass(frozen=True)
class Record:
    """The outcome of one trial and everything that was seen of it.

    `flags` holds the switches as requested and as read back before and after training. `environment` is what must be
    equal for figures to be pooled, `process` what differs from process to process by nature. `covariates` is the state
    of the device "before" and "after" the steps, by the names in runner.worker.covariates: what could not be read is
    left out. `again` are the digests of the further trainings from the same state in the same process
    (repeat_in_process); everything else is of the first one. `not_deterministic` names the operations that PyTorch
    called so. `calls` is what phase=calls saw; `doctor` what phase=attach found in the script, a sentence each, which
    begins with file and line where there is one, and `gradients` their digests in its steps 1, 2, 4, 8, ...
    """

    cell: str
    number: int
    position: int
    outcome: Outcome
    reason: str | None
    refused: bool
    started: str
    ended: str
    flags: dict[str, dict[str, Any]]
    environment: dict[str, Plain]
    process: dict[str, Plain]
    seeds: dict[str, int]
    digests: Digests | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    speed: Speed | None = None
    memory: dict[str, int | None] = field(default_factory=dict)
    covariates: dict[str, dict[str, Plain]] = field(default_factory=dict)
    again: list[Digests] = field(default_factory=list)
    not_deterministic: list[str] = field(default_factory=list)
    calls: Calls | None = None
    doctor: list[str] = field(default_factory=list)
    gradients: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, trial: Trial, outcome: Outcome, reason: str | None, started: str, **seen: Any) -> "Record":
        """The record of a trial that ends now; `seen` holds the remaining fields, as far as they are known."""
        known: dict[str, Any] = {"refused": False, "flags": {}, "environment": {}, "process": {}} | seen
        attempt = {"isolation": trial.config["isolation"], "claim": trial.claim, "exclusive": trial.exclusive}
        known["process"] = attempt | known["process"]
        place: dict[str, Any] = {
            "cell": trial.cell,
            "number": trial.number,
            "position": trial.position,
            "seeds": trial.seeds,
        }
        return cls(**place, outcome=outcome, reason=reason, started=started, ended=now(), **known)

    @property
    def complete(self) -> bool:
        """Whether the training went through all of its steps with finite results."""
        return self.outcome == "finished"

    @property
    def failed(self) -> bool:
        """Whether the training did not come to its end."""
        return self.outcome in ("failed", "timed_out", "interrupted")

    def write(self, path: Path) -> None:
        """Write record.json."""
        write_json(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Read what `write` wrote. Raises StudyError naming path, field and what it holds for a damaged file."""
        return read_fields(path, SCHEMA, _made, "restore it or set it aside")


# What the first records of this schema do not have.
_ADDED: dict[str, Any] = {"covariates": {}, "again": [], "not_deterministic": [], "calls": None}
_ADDED |= {"doctor": [], "gradients": {}}
_ADDED_SPEED = dict.fromkeys(("p99_ms", "steps_s", "compile_s", "first_step_read_bytes", "energy_j_per_sample"))
_ADDED_SPEED |= dict.fromkeys(("lag_ms", "synchronizing"))

_NO_LEAST, _FLOATS = float("-inf"), sys.float_info.max
# What a part's numbers are at least, and below what in size: a time that ran backwards, or a figure that no device has,
# would spoil every mean that it enters. Whole numbers beyond all floats would end the arithmetic itself.
_BOUNDS = {
    "speed": (0.0, 1e15),
    "memory": (0.0, 1e18),
    "calls": (0.0, 1e20),
    "covariates": (_NO_LEAST, 1e18),
    **dict.fromkeys(("position", "environment", "process", "seeds", "flags"), (_NO_LEAST, _FLOATS)),
}
_LEAST_STEP_MS = 1e-6  # the logarithm of a step time is taken


def _made(fields: dict[str, Any]) -> Record:
    kinds: dict[str, Any] = {"digests": Digests, "speed": Speed}
    if isinstance(fields.get("speed"), dict):
        fields = fields | {"speed": _ADDED_SPEED | fields["speed"]}
    parts: dict[str, Any] = {
        name: of_fields(kind, fields[name], name) for name, kind in kinds.items() if fields.get(name) is not None
    }
    if isinstance(fields.get("again"), list):
        parts["again"] = [of_fields(Digests, one, f"again.{index}") for index, one in enumerate(fields["again"])]
    if fields.get("calls") is not None:
        parts["calls"] = Calls.of(fields["calls"])
    record = of_fields(Record, _ADDED | fields | parts)
    for moment in (record.started, record.ended):
        datetime.fromisoformat(moment)
    for digests in filter(None, (record.digests, *record.again)):
        list(map(int, digests.steps))
    for part, (least, below) in _BOUNDS.items():
        _check_numbers(part, fields.get(part), least, below)
    if record.speed and record.speed.step_ms is not None:
        _check_numbers("speed.step_ms", record.speed.step_ms, _LEAST_STEP_MS, _FLOATS)
    return record


def _check_numbers(name: str, value: Any, least: float, below: float) -> None:
    """Raises ValueError for a number in `value`, at any depth, that is under `least` or not `below` in size."""
    if _within([value], least, below):  # no names are made for the many numbers that are as they should be
        return
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            _check_numbers(f"{name}.{key}", one, least, below)
    elif value < least:
        raise ValueError(f"{name} holds {short(value)}, should be at least {least:g}")
    else:
        raise ValueError(f"{name} holds {short(value)}, should be below {below:g} in size")


def _within(values: Iterable[Any], least: float, below: float) -> bool:
    """Whether every number in `values`, at any depth, is at least `least` and `below` in size."""
    for one in values:
        if isinstance(one, (int, float)):
            if one < least or abs(one) >= below:
                return False
        elif isinstance(one, (dict, list)):
            inside = one.values() if isinstance(one, dict) else one
            if not _within(inside, least, below):
                return False
    return True
