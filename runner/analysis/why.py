"""Why the trials of a cell part: their traces compared, and what may remove each difference, for summary.json."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from runner.analysis.advice import above, advice
from runner.analysis.divergence import Divergence
from runner.analysis.finding import Finding
from runner.analysis.ladder import deepest, sentence
from runner.analysis.sample import Sample
from runner.analysis.size import operation_sizes
from runner.analysis.traces import Compared, compare
from runner.captured import captures_of
from runner.errors import StudyError
from runner.record import Record
from runner.study import Study
from runner.trace import Trace

TRACED = ("ops", "modules")


def why(study: Study, sample: Sample, divergence: Divergence) -> dict[str, Any] | None:
    """What the traces of a cell's trials show; None without a probe that traces, and where no difference was seen.

    Traces that cannot be read are named under "damaged", and left out.
    """
    if sample.cell.config.get("probe", {}).get("name") not in TRACED:
        return None
    traces, damaged = traces_of(study, sample.records)
    compared = compared_traces(traces, divergence, sample.records)
    same = divergence.verdict in ("bitwise", "single", None) and not compared.findings
    if same and not compared.first_not_finite and not damaged:
        return None
    config, sizes = sample.cell.config, _sizes(study, sample)
    return asdict(compared) | {
        "findings": [
            asdict(one) | {"advice": _advised(one, config), "captured": sizes.get((one.index, one.name))}
            for one in compared.findings
        ],
        "sentence": sentence(divergence, compared),
        "deepest": deepest(divergence, compared),
        "notes": sorted({trace.note for trace in traces if trace.note}),
        "damaged": damaged,
    }


def _sizes(study: Study, sample: Sample) -> dict[tuple[int, str], dict[str, Any]]:
    """How large the differences are that the captures of a cell saw, by index and name of the operation."""
    return {(one["index"], one["name"]): one for one in operation_sizes(captures_of(study, sample.cell.id))}


def traces_of(study: Study, records: Sequence[Record]) -> tuple[list[Trace], list[str]]:
    """The traces of the trials that trained to the end, also to a diverged one, and what is wrong with others."""
    traces, damaged = [], []
    for record in records:
        try:
            trace = study.trace(record) if record.outcome in ("finished", "diverged") else None
        except StudyError as error:
            damaged.append(str(error))
        else:
            traces += [trace] if trace else []
    return traces, damaged


def compared_traces(traces: Sequence[Trace], divergence: Divergence, records: Sequence[Record]) -> Compared:
    """The traces of one cell compared as far as start and data are equal."""
    diverged = any(record.outcome == "diverged" for record in records)
    return compare(traces, divergence.same_start, divergence.first_data_step, diverged)


def _advised(found: Finding, config: dict[str, Any]) -> list[dict[str, Any]]:
    return [asdict(one) for one in advice(found, config)]


def advice_above(divergence: Divergence, config: dict[str, Any]) -> list[dict[str, Any]]:
    """What may remove a difference of start or data; nothing where these are equal. It needs no probe."""
    rung = "start" if not divergence.same_start else "data" if divergence.first_data_step else None
    return [asdict(one) for one in above(rung, config)] if rung else []
