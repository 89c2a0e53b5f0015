"""A side of a comparison: the cells of a study, or those of a certificate, as facts that can be set side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from runner.analysis.environment import ENVIRONMENT, INSTANCE
from runner.analysis.evidence import Evidence
from runner.analysis.kernel_summary import CellKernels
from runner.analysis.ratio import step_times
from runner.analysis.readable import readable
from runner.analysis.sample import Sample, samples_of
from runner.certificate import Bits, Certificate, Facts
from runner.kernel_use import KernelUse
from runner.record import Digests, Plain, Record
from runner.series import Series
from runner.study import Study
from runner.trace import Trace

SEEN = (*ENVIRONMENT, *INSTANCE, "hash_seed")


@dataclass(frozen=True)
class Side:
    """What is compared: a study or a certificate.

    `notes` say what of it is not there; `lost` what could not be used although it is. By a cell's label, `kernels` are
    those that its trials ran (probe=kernels) and `traces` has the operations of its first trial (probe=ops or modules).
    """

    name: str
    version: str
    command: list[str]
    cells: list[Facts]
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    kernels: dict[str, list[KernelUse]] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)


def side_at(path: Path) -> Side:
    """The study in a folder, or the certificate in a file. Raises StudyError if there is neither, or a damaged one."""
    if path.is_dir():
        return side_of(Study.open(path))
    return certified(Certificate.read(path), str(path))


def certified(certificate: Certificate, name: str) -> Side:
    """The side of a certificate, by the name of its file."""
    return Side(name, certificate.version, certificate.command, certificate.cells)


def side_of(study: Study) -> Side:
    """The side of a study: every cell once for each environment in which it was trained."""
    evidence, asked = Evidence.of(study), study.asked()
    samples = samples_of(evidence)
    found = [(sample, facts_of(study, sample)) for sample in samples]
    traces = {sample.label: readable(sample.finished[:1], study.trace) for sample in samples}
    return Side(
        name=str(study.folder),
        version=str(asked.get("version", "")),
        command=command_of(asked),
        cells=[facts for _, facts in found if facts],
        notes=[
            *(note for sample in samples for note in _notes(sample)),
            *(damaged for _, found in traces.values() for damaged in found),
        ],
        lost=[
            *(f"{sample.label}: no trial of it can be compared" for sample, facts in found if facts is None),
            *evidence.damaged,
        ],
        kernels={sample.label: CellKernels.of(study, sample).uses for sample in samples},
        traces={label: traced[0] for label, (traced, _) in traces.items() if traced},
    )


def command_of(asked: dict[str, Any]) -> list[str]:
    """The command that made a study; the bare one where study.json does not say."""
    command = asked.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return command
    return ["python", "-m", "runner"]


def _notes(sample: Sample) -> Iterator[str]:
    if sample.missing:
        yield f"{sample.label}: trials that were asked for and are not there (yet): {sample.missing}"
    failed = sum(record.failed for record in sample.records)
    if failed:
        yield f"{sample.label}: {failed} of its trials failed"


def facts_of(study: Study, sample: Sample) -> Facts | None:
    """What the trials of one sample left; None if none of them has both digests and series."""
    trained: list[Record] = []
    found: list[Bits] = []
    for record in sample.records:
        bits = _bits(record, study.series(record))
        if bits:
            trained.append(record)
            found += [bits] if bits not in found else []
    if not trained:
        return None
    return Facts(
        label=sample.label,
        config=sample.cell.config,
        environment=_environment(trained),
        processes=len(trained),
        interpreters=len({record.process.get("interpreter") for record in trained}),
        bits=found,
        metrics=trained[0].metrics,
        step_ms=step_times(sample.timed),
    )


def _bits(record: Record, series: Series | None) -> Bits | None:
    digests = record.digests
    if digests is None or series is None:
        return None
    return Bits(
        seeds=record.seeds,
        initial=digests.initial,
        data=_hexadecimal(series.data),
        losses=_hexadecimal(series.loss[:, None]),
        weights=_weights(digests, len(series.loss)),
        metrics=digests.metrics,
        predictions=digests.predictions,
    )


def _weights(digests: Digests, steps: int) -> dict[str, str]:
    found = digests.steps | {str(steps): digests.final}
    return {step: found[step] for step in sorted(found, key=int)}


def _hexadecimal(table: np.ndarray) -> list[str]:
    """The bits of each row of numbers (n, k), as hexadecimal digits, the most significant first."""
    width = 2 * table.itemsize * table.shape[1]
    text = np.ascontiguousarray(table, dtype=table.dtype.newbyteorder(">")).tobytes().hex()
    return [text[start : start + width] for start in range(0, len(text), width)]


def _environment(records: Sequence[Record]) -> dict[str, Plain]:
    """The environment of trials of one sample: what names an instance may be several, which are listed."""
    found: dict[str, Plain] = {}
    for key in SEEN:
        values = list(dict.fromkeys(record.environment.get(key) for record in records))
        found[key] = values[0] if len(values) == 1 else ", ".join(sorted(map(str, values)))
    return found
