"""A repro file: one Python file and its tensors, which show with PyTorch alone that an operation differs."""

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.analysis.size import operation_sizes
from runner.capture import captured_indices, differing, run_captures
from runner.captured import Captured, CapturedOperation, captures_of
from runner.cell import Cell
from runner.errors import StudyError
from runner.layout import record_file
from runner.record import Record
from runner.report.repro_file import repro_text
from runner.report.words import verdict_words
from runner.study import Study

_TEMPLATE = Path(__file__).parent / "worker" / "reproduce.py"


@dataclass(frozen=True)
class _Shown:
    """A finding of a cell as the summary has it, the operation as a capture kept it, and all captures of the cell."""

    finding: dict[str, Any]
    capture: Captured
    captures: list[Captured]

    @property
    def operation(self) -> CapturedOperation:
        return self.capture.operations[int(self.finding["index"])]


def write_repro(study: Study, path: Path, index: int | None = None, cell: str | None = None) -> None:
    """Write `path`, and its tensors beside it with the suffix .pt, for the operation with this index, else the first.

    `cell` is the id of a cell or the beginning of its label; else all cells are looked at. What is not captured yet is
    captured first. Raises StudyError where there is no mismatch to show or nothing can be written, and says why.
    """
    from runner.analysis.summary import summarise  # takes its time, as scipy.stats does

    if path.suffix != ".py":
        raise StudyError(f"--repro {path}: is to be a Python file; name one that ends in .py")
    if not path.parent.is_dir():
        raise StudyError(f"--repro {path}: there is no folder {path.parent}; make it, or name a file in another")
    summary = summarise(study)
    asked = _asked(summary["cells"], cell)
    cells = [one for one in asked if differing(one)]
    if not cells:
        raise StudyError(_nothing_found(asked, study.folder))
    if index is not None and not any(index == found["index"] for one in cells for found in differing(one)):
        raise StudyError(_not_found(cells, index, study.folder))
    run_captures(study, summary)
    shown = _first_shown(study, cells, index)
    if shown is None:
        raise StudyError(_not_captured(study, cells, index))
    environment = Record.read(record_file(shown.capture.folder)).environment
    template = _TEMPLATE.read_text(encoding="utf-8")
    text = repro_text(template, path.name, shown.finding, shown.operation, _size(shown), environment)
    try:
        shutil.copyfile(shown.capture.tensors(shown.operation.index), path.with_suffix(".pt"))
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(
            f"--repro {path}: cannot be written ({error.strerror}); name a file in another folder"
        ) from error


def _asked(cells: list[dict[str, Any]], asked: str | None) -> list[dict[str, Any]]:
    """The cells with this id or beginning of a label, all if none is asked for."""
    if asked is None:
        return cells
    found = [cell for cell in cells if cell["cell"] == asked or cell["label"].startswith(asked)]
    if not found:
        there = "; ".join(f"{cell['cell']} ({cell['label']})" for cell in cells)
        raise StudyError(f"--cell {asked}: no cell has this id or a label that begins so; there are {there}")
    return found


def _first_shown(study: Study, cells: list[dict[str, Any]], index: int | None) -> _Shown | None:
    """What can be shown of the first operation, in the order of the cells and of their traces."""
    for cell in cells:
        captures = captures_of(study, cell["cell"])
        for finding in differing(cell):
            for capture in captures if index in (None, finding["index"]) else ():
                kept = capture.operations.get(finding["index"])
                same = kept and kept.name == finding["name"] and kept.name.startswith("aten.")
                if kept and same and kept.tensors and not _wrong(capture, kept):
                    return _Shown(finding, capture, captures)
    return None


def _wrong(capture: Captured, kept: CapturedOperation) -> str | None:
    """What of an operation's capture is gone or damaged, if anything."""
    record = record_file(capture.folder)
    try:
        capture.tensors(kept.index)
        Record.read(record)
    except StudyError as error:
        return str(error) if record.is_file() else f"{record}: is missing; remove its folder, it is captured again"
    return None


def _size(shown: _Shown) -> str:
    """How large the difference is, in words."""
    size = next(size for size in operation_sizes(shown.captures) if size["index"] == shown.operation.index)
    return str(size["words"]) if size["between"] or size["repeated"] else "the size of the difference is not known"


def _nothing_found(cells: list[dict[str, Any]], folder: Path) -> str:
    """Why there is no operation to show: none was looked at, or where trials part otherwise, if they do."""
    traced = [cell for cell in cells if Cell(cell["config"]).probe == "ops"]
    if not traced:
        return f"{folder}: its trials were not traced; do the study with probe=ops, {_see(folder)}"
    cell = next((one for one in traced if one["traces"]), traced[0])
    sentence = (cell["traces"] or cell["reproducibility"])["sentence"]
    seen = f"{cell['label']}: {verdict_words(cell)}; {sentence}"
    return f"{folder}: no operation was found that differs on equal inputs ({seen})"


def _not_found(cells: list[dict[str, Any]], index: int, folder: Path) -> str:
    """Why an operation that does not differ in any of these cells cannot be shown."""
    trials = max(cell["traces"]["trials"] for cell in cells)
    each = [", ".join(str(one["index"]) for one in differing(cell)) for cell in cells]
    there = "; ".join(f"{numbers} of {cell['label']}" for numbers, cell in zip(each, cells, strict=True))
    equal = f"no different results on equal inputs in {trials} trials"
    return f"operation {index}: {equal}; those that differ are {there if len(cells) > 1 else each[0]}, {_see(folder)}"


def _see(folder: Path) -> str:
    return f"see python -m runner.why {shlex.quote(str(folder))}"


def _not_captured(study: Study, cells: list[dict[str, Any]], index: int | None) -> str:
    """Why the tensors of an operation that differs are not there."""
    cell, found = next((cell, one) for cell in cells for one in differing(cell) if index in (None, one["index"]))
    wanted, captured = found["index"], captured_indices(cell)
    if not found["name"].startswith("aten."):
        return f"operation {wanted}, {found['name']}, is not PyTorch's own: a file with PyTorch alone cannot show it"
    captures = [one for one in captures_of(study, cell["cell"]) if wanted in one.operations]
    kept = [(one, one.operations[wanted]) for one in captures]
    reasons = [wrong for capture, one in kept if one.tensors and (wrong := _wrong(capture, one))]
    reasons += [reason for _, one in kept for reason in one.left_out]
    if wanted not in captured:
        reasons = [f"only these are, the first found: {', '.join(map(str, captured))}"]
    failed = f"the captures of {cell['label']} failed, see {study.capture_folder(cell['cell'], 0)}"
    return f"operation {wanted} was not captured: {(*reasons, failed)[0]}"
