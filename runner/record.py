"""A record: what one trial left on disk. It holds raw facts; every statistic is derived from it elsewhere."""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from runner.jsonfile import of_fields, read_fields, write_json
from runner.trial import Trial

SCHEMA = 1


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


Outcome = Literal["finished", "failed", "timed_out", "diverged", "interrupted"]
Plain = str | int | float | bool | None


@dataclass(frozen=True)
class Digests:
    """128-bit digests over raw bits, as 32 hexadecimal digits.

    `data` and `losses` cover all steps together (per step they are in series.npz); `steps` holds the weights after
    steps 1, 2, 4, 8, ...; `metrics` covers the bits of the evaluation figures, `predictions` those of the predicted
    classes (or values) over the whole test set.
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


@dataclass(frozen=True)
class Record:
    """The outcome of one trial and everything that was seen of it.

    `flags` holds the switches as requested and as read back before and after training. `environment` is what must be
    equal for figures to be pooled, `process` what differs from process to process by nature.
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


def _made(fields: dict[str, Any]) -> Record:
    kinds: dict[str, Any] = {"digests": Digests, "speed": Speed}
    parts = {name: of_fields(kind, fields[name], name) for name, kind in kinds.items() if fields.get(name) is not None}
    record = of_fields(Record, fields | parts)
    for moment in (record.started, record.ended):
        datetime.fromisoformat(moment)
    for step in record.digests.steps if record.digests else ():
        int(step)
    if record.speed and record.speed.step_ms is not None and record.speed.step_ms <= 0:
        raise ValueError(f"speed.step_ms holds {record.speed.step_ms}, should be above 0")  # its logarithm is taken
    return record
