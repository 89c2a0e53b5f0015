"""A repro file: one Python file and its tensors, which show with PyTorch alone that an operation differs."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.analysis.size import operation_sizes
from runner.capture import MOST_OPERATIONS, captured_indices, run_captures
from runner.captured import Captured, CapturedOperation, captures_of, tensors_file
from runner.errors import StudyError
from runner.operation import Operation
from runner.record import Record
from runner.report.repro_file import own_name, repro_text
from runner.study import Study, record_file

_COMPUTES_NOTHING = {
    "view": "only shows its input in another form",
    "random": "draws random numbers",
    "uninitialised": "gives memory as it lies there",
}
_TEMPLATE = Path(__file__).parent / "worker" / "reproduce.py"


@dataclass(frozen=True)
class _Shown:
    """A finding of a cell as the summary has it, the capture that kept its operation, and the capture's record."""

    finding: dict[str, Any]
    capture: Captured
    record: Record

    @property
    def operation(self) -> CapturedOperation:
        return self.capture.operations[int(self.finding["index"])]


def write_repro(study: Study, path: Path, index: int | None = None) -> None:
    """Write `path`, and its tensors beside it with the suffix .pt, for the operation with this index, else the first.

    What is not captured yet is captured first. Raises StudyError where there is no mismatch to show, and says why.
    """
    from runner.analysis.summary import summarise  # takes its time, as scipy.stats does

    if path.suffix != ".py":
        raise StudyError(f"--repro {path}: is to be a Python file; name one that ends in .py")
    summary = summarise(study)
    cells = [cell for cell in summary["cells"] if captured_indices(cell)]
    if not cells:
        raise StudyError(_nothing_found(summary))
    if index is not None and not any(index in _indices(cell) for cell in cells):
        raise StudyError(_not_found(study, cells[0], index))
    run_captures(study, summary)
    shown = next(_shown(study, cells, index), None)
    if shown is None:
        raise StudyError(_not_captured(study, cells, index))
    shutil.copyfile(tensors_file(shown.capture.folder, shown.operation.index), path.with_suffix(".pt"))
    template = _TEMPLATE.read_text(encoding="utf-8")
    text = repro_text(
        template, path.name, shown.finding, shown.operation, _size(study, shown), shown.record.environment
    )
    path.write_text(text, encoding="utf-8")


def _indices(cell: dict[str, Any]) -> list[int]:
    """The operations of a cell that were found to differ."""
    return [one["index"] for one in cell["why"]["findings"] if one["rung"] == "operation"]


def _shown(study: Study, cells: list[dict[str, Any]], index: int | None) -> Iterator[_Shown]:
    """What can be shown, in the order of the cells and of their traces."""
    for cell in cells:
        captures = captures_of(study, cell["cell"])
        for finding in cell["why"]["findings"]:
            if finding["rung"] == "operation" and index in (None, finding["index"]):
                for capture in captures:
                    kept = capture.operations.get(finding["index"])
                    if kept and kept.name == finding["name"] and kept.tensors and kept.name.startswith("aten."):
                        yield _Shown(finding, capture, Record.read(record_file(capture.folder)))


def _size(study: Study, shown: _Shown) -> str:
    """How large the difference is, in words."""
    sizes = operation_sizes(captures_of(study, shown.record.cell))
    size = next(size for size in sizes if size["index"] == shown.operation.index)
    return str(size["words"]) if size["between"] or size["repeated"] else "the size of the difference is not known"


def _nothing_found(summary: dict[str, Any]) -> str:
    """Why there is no operation to show: none was looked at, or what differs is no operation."""
    folder = f"study {summary['study']}"
    traced = [cell for cell in summary["cells"] if cell["config"].get("probe", {}).get("name") == "ops"]
    if not traced:
        return f"{folder}: its trials were not traced; do the study with probe=ops, see python -m runner.why"
    found = [(cell, one) for cell in traced for one in (cell["why"] or {}).get("findings", [])]
    if found:
        cell, one = found[0]
        return f"{cell['label']}: {one['words']}: that is no operation whose result differs, so there is none to show"
    cell = next((one for one in traced if one["reproducibility"]["first_diverging_step"] is not None), traced[0])
    verdict = cell["reproducibility"]
    if verdict["first_data_step"]:
        return f"{cell['label']}: the data differ at step {verdict['first_data_step']}: no operation is to be shown"
    if verdict["verdict"] == "bitwise":
        return f"{cell['label']}: {verdict['trials']} of {verdict['trials']} trials are bitwise equal: nothing to show"
    return f"{cell['label']}: none of the operations traced differs on equal inputs: there is no mismatch to show"


def _not_found(study: Study, cell: dict[str, Any], index: int) -> str:
    """Why the operation with this index cannot be shown."""
    other = next((one for one in cell["why"]["findings"] if one["index"] == index), None)
    if other:
        return f"operation {index}: {other['words']}: that is no operation whose result differs"
    records = [record for record in study.records() if record.cell == cell["cell"] and record.complete]
    traces = [trace for trace in map(study.trace, records) if trace]
    there = ", ".join(map(str, _indices(cell)))
    last = min(len(trace.operations) for trace in traces) - 1
    if not 0 <= index <= last:
        return f"--operation {index}: the traces have operations 0 to {last}; those that differ are {there}"
    return f"{_clean([trace.operations[index] for trace in traces])}; those that differ are {there}"


def _clean(trials: list[Operation]) -> str:
    """What is known of an operation of which nothing was found, by what each trial did."""
    one, inputs = trials[0], {(trial.scalars, *(value.digest for value in trial.inputs)) for trial in trials}
    what = f"operation {one.index}, {own_name(one.name)}{f' in {one.module}' if one.module else ''}"
    if one.kind in _COMPUTES_NOTHING:
        return f"{what}, {_COMPUTES_NOTHING[one.kind]}: there is no mismatch to show"
    again = "gave equal results when repeated" if one.repeated else "was not repeated (probe.repeat=true does that)"
    if len(inputs) == len(trials):
        return f"{what}, had other inputs in each of {len(trials)} trials and {again}: there is no mismatch to show"
    repeated = " and when repeated" if one.repeated else ""
    return f"{what}, gave equal results in all {len(trials)} trials{repeated}: there is no mismatch to show"


def _not_captured(study: Study, cells: list[dict[str, Any]], index: int | None) -> str:
    """Why the tensors of an operation that differs are not there."""
    wanted = index if index is not None else captured_indices(cells[0])[0]
    cell = next(cell for cell in cells if wanted in _indices(cell))
    name = next(one["name"] for one in cell["why"]["findings"] if one["index"] == wanted)
    if not name.startswith("aten."):
        return f"operation {wanted}, {name}, is not PyTorch's own: a file with PyTorch alone cannot show it"
    if wanted not in captured_indices(cell):
        kept = ", ".join(map(str, captured_indices(cell)))
        return f"operation {wanted} was not captured, only the first {MOST_OPERATIONS} found are: take one of {kept}"
    captures = [one for one in captures_of(study, cell["cell"]) if wanted in one.operations]
    reasons = [reason for one in captures for reason in one.operations[wanted].left_out]
    where = study.capture_folder(cell["cell"], 0)
    said = reasons[0] if reasons else f"the captures of {cell['label']} failed, see {where}"
    return f"operation {wanted} was not captured: {said}"
