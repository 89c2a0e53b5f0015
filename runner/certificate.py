"""A certificate: what the trainings of cells that repeat left, bit by bit, and the state in which they left it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.errors import StudyError
from runner.jsonfile import canonical, of_fields, plain, read_json, short, write_json
from runner.record import Plain

SCHEMA = 1
_WAY_OUT = "restore it, or make it again with `python -m runner.certify STUDY`"


@dataclass(frozen=True)
class Bits:
    """What one training left: digests and raw bits as hexadecimal digits.

    `data` has for each step the digest of its inputs and targets, `losses` the bits of its loss. `weights` has the
    digest of the weights after steps 1, 2, 4, 8, ... and after the last one, by the step (with phase=infer of all
    outputs up to there). `initial`, `metrics` and `predictions` are those of runner.record.Digests.
    """

    seeds: dict[str, int]
    initial: str
    data: list[str]
    losses: list[str]
    weights: dict[str, str]
    metrics: str
    predictions: str


@dataclass(frozen=True)
class Facts:
    """What is known of one cell in one environment, from the records of a study or from a certificate.

    `bits` are the different ones among so many `processes`, each with its first training, which came from so many
    `interpreters`; a certificate has one. `environment` has the keys of runner.analysis.environment. `metrics` are the
    evaluation figures of the first training, `step_ms` the steady step time of each trial whose speed counts.
    """

    label: str
    config: dict[str, Any]
    environment: dict[str, Plain]
    processes: int
    interpreters: int
    bits: list[Bits]
    metrics: dict[str, float | None]
    step_ms: list[float]

    @property
    def steps(self) -> int:
        """How many steps the first training took."""
        return len(self.bits[0].losses)


@dataclass(frozen=True)
class Certificate:
    """The cells of a study that repeat, with a sentence for each; `command` and `version` are those of the study.

    The file has a digest over all of its content: a checksum against damage and careless changes. It is no signature,
    since anyone can compute it anew.
    """

    study: str
    version: str
    command: list[str]
    statements: list[str]
    cells: list[Facts]

    def write(self, path: Path) -> None:
        """Write the file; equal certificates give equal bytes."""
        content = plain({"schema": SCHEMA, **asdict(self)})
        write_json(path, content | {"digest": _digest(content)})

    @classmethod
    def read(cls, path: Path) -> "Certificate":
        """Read what `write` wrote.

        Raises StudyError naming the path, for a file that is missing, truncated, changed or of another version.
        """
        if path.is_dir():
            raise StudyError(
                f"{path}: is a folder; make a certificate of a study with `python -m runner.certify {path}`"
            )
        if not path.exists():
            raise StudyError(f"{path}: no such file; name one that runner.certify made, or to compare a study's folder")
        content = read_json(path, SCHEMA)
        said = content.pop("digest", None)
        if not isinstance(said, str):
            raise StudyError(f"{path}: is no certificate, it has no digest; name a file that runner.certify made")
        try:
            found = _digest(content)
        except ValueError as error:  # a number that is none: JSON proper has no NaN
            raise StudyError(f"{path}: holds what no certificate has ({error}); {_WAY_OUT}") from error
        if found != said:
            raise StudyError(f"{path}: was changed, its digest does not fit its content; {_WAY_OUT}")
        del content["schema"]
        try:
            return _made(content)
        except ValueError as error:
            raise StudyError(f"{path}: {error}; {_WAY_OUT}") from error


def _digest(content: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON. Raises ValueError for NaN and infinities."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _made(fields: dict[str, Any]) -> Certificate:
    cells = fields.get("cells")
    if not isinstance(cells, list) or not cells:
        raise ValueError("cells is no list of cells")
    made = [_facts(cell, f"cells.{place}") for place, cell in enumerate(cells)]
    if len({canonical(cell.config) for cell in made}) < len(made):
        raise ValueError("cells has one of them twice")
    return of_fields(Certificate, fields | {"cells": made})


def _facts(found: Any, part: str) -> Facts:
    bits = found.get("bits") if isinstance(found, dict) else None
    if not isinstance(bits, list) or len(bits) != 1:
        raise ValueError(f"{part}.bits is no list of one training")
    facts = of_fields(Facts, found | {"bits": [of_fields(Bits, bits[0], f"{part}.bits.0")]}, part)
    _check(facts, part)
    return facts


def _check(facts: Facts, part: str) -> None:
    """Raise ValueError for what `runner.certify` never writes, though each field by itself is of its type."""
    bits, steps = facts.bits[0], facts.steps
    if not 1 <= facts.interpreters <= facts.processes or facts.processes < 2:
        said = f"{facts.processes} processes from {facts.interpreters} interpreters"
        raise ValueError(f"{part} has {said}; at least 2 processes are needed, and no more interpreters than these")
    if not steps or len(bits.data) != steps:
        raise ValueError(f"{part}.bits.0 has losses of {steps} steps and data of {len(bits.data)}")
    _check_config(facts.config, f"{part}.config")
    if str(steps) not in bits.weights or not bits.weights.keys() <= set(map(str, range(1, steps + 1))):
        there = short(", ".join(bits.weights))
        raise ValueError(f"{part}.bits.0.weights has the steps {there}, due are {steps}, the last, and earlier ones")
    if any(ms <= 0 for ms in facts.step_ms):
        raise ValueError(f"{part}.step_ms has times of 0 or less")


def _check_config(config: dict[str, Any], part: str) -> None:
    """Raise ValueError for settings that say neither mode, model nor data: they are no cell's."""
    pair, names = ("deterministic", "benchmark"), [(group, "name") for group in ("model", "dataset")]
    for group, key in (*(("cudnn", one) for one in pair), *names):
        found = config.get(group)
        value = found.get(key) if isinstance(found, dict) else None
        wanted = bool if group == "cudnn" else str
        if not isinstance(value, wanted):
            due = "true or false" if wanted is bool else "a name"
            raise ValueError(f"{part}.{group}.{key} holds {short(value)}, should be {due}")
