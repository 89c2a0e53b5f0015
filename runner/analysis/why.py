"""Why the trials of a cell part: their traces compared, and what may remove each difference, for summary.json."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from runner.analysis.accuracy import CellCaptures
from runner.analysis.advice import advice
from runner.analysis.divergence import Divergence
from runner.analysis.ladder import deepest, sentence
from runner.analysis.readable import readable
from runner.analysis.sample import Sample
from runner.analysis.size import operation_sizes
from runner.analysis.traces import compare
from runner.analysis.words import steps_words
from runner.captured import Captured, captures_of
from runner.cell import Cell
from runner.errors import StudyError
from runner.layout import trace_file
from runner.record import Record
from runner.study import Study
from runner.trace import Trace

TRACED = ("ops", "modules")
_AGAIN = "remove the trial's folder to have it done again"


@dataclass(frozen=True)
class CellTraces:
    """The traces of a cell's trials in one environment, what is wrong with others, and the cell's captures."""

    sample: Sample
    traces: list[Trace]
    damaged: list[str]
    captures: list[Captured]

    @classmethod
    def of(cls, study: Study, sample: Sample) -> "CellTraces":
        """Read those of trials that trained to the end, also to a diverged one: none without a probe that traces."""
        if sample.cell.probe not in TRACED:
            return cls(sample, [], [], [])
        trained = [record for record in sample.records if record.outcome in ("finished", "diverged")]
        return cls(sample, *readable(trained, partial(_trace, study, sample.cell)), captures_of(study, sample.cell.id))

    @property
    def captured(self) -> CellCaptures | None:
        """The captures with the trace by whose indices they count; None where either is missing."""
        if not (self.traces and self.captures):
            return None
        return CellCaptures(self.sample.label, self.sample.cell.config, self.traces[0], self.captures)


def _trace(study: Study, cell: Cell, record: Record) -> Trace:
    """A trained trial's trace. Raises StudyError also where it is gone, or not what the cell's probe leaves."""
    trace, path = study.trace(record), trace_file(study.trial_folder(record.cell, record.number))
    if trace is None:
        raise StudyError(f"{path}: is missing; {_AGAIN}")
    most = cell.config["probe"]["steps"]
    if trace.level != cell.probe or trace.steps > most:
        said = f"{trace.level} of {trace.steps} steps, due are {cell.probe} of at most {most}"
        raise StudyError(f"{path}: holds {said}; {_AGAIN}")
    return trace


def why(cell: CellTraces, divergence: Divergence) -> dict[str, Any] | None:
    """What the traces of a cell's trials show; None without a probe that traces, and where no difference was seen.

    Traces that cannot be read are named under "damaged", and left out.
    """
    sample = cell.sample
    if sample.cell.probe not in TRACED:
        return None
    diverged = any(record.outcome == "diverged" for record in sample.records)
    compared = compare(cell.traces, divergence.same_start, divergence.first_data_step, diverged)
    same = divergence.verdict in ("bitwise", "single", None) and not compared.findings
    if same and not compared.first_not_finite and not cell.damaged:
        return None
    config, sizes = sample.cell.config, _sizes(cell.captures)
    return asdict(compared) | {
        "findings": [
            asdict(found)
            | {"advice": list(map(asdict, advice(found, config))), "captured": sizes.get((found.index, found.name))}
            for found in compared.findings
        ],
        "sentence": sentence(divergence, compared),
        "deepest": deepest(divergence, compared),
        "notes": [*sorted({trace.note for trace in cell.traces if trace.note}), *_fewer(cell)],
        "damaged": cell.damaged,
    }


def _fewer(cell: CellTraces) -> list[str]:
    """That trials did different numbers of steps, and none as many as the probe was asked to look into."""
    steps, asked = max((trace.steps for trace in cell.traces), default=None), cell.sample.cell.config["probe"]["steps"]
    short = steps is not None and steps < asked
    ends = sorted({trace.steps for trace in cell.traces})
    uneven = [f"{steps_words(ends[0])}, the most traced are {ends[-1]}"] if len(ends) > 1 else []
    return uneven + ([f"the training ends after step {steps}: probe.steps={asked} saw no more"] if short else [])


def _sizes(captures: list[Captured]) -> dict[tuple[int, str], dict[str, Any]]:
    """How large the differences are that the captures of a cell saw, by index and name of the operation."""
    return {(one["index"], one["name"]): one for one in operation_sizes(captures)}
