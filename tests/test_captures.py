"""Which trainings are captured: those of cells with findings and their like, once or twice, and what goes wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, make_cell, make_study

from runner import capture as captures
from runner.analysis.evidence import Evidence
from runner.analysis.sample import samples_of
from runner.analysis.why import CellTraces
from runner.capture import MOST_OPERATIONS, captured_indices, run_captures
from runner.captured import CapturedOperation, captures_of, write_operations
from runner.cell import Cell
from runner.errors import StudyError
from runner.layout import record_file, trace_file, trial_file
from runner.operation import Operation, Value
from runner.record import Outcome, Record
from runner.study import Study
from runner.trace import Trace
from runner.trial import Trial


def probed(mode: str, **train: Any) -> Cell:
    settings = {"steps": 50, "epochs": None, "evaluate_every": 5, "schedule": "constant"} | train
    return make_cell(mode, probe={"name": "ops", "steps": 2, "repeat": False}, train=settings, isolation="spawn")


def traced(study: Study, cell: Cell, modules: list[str]) -> None:
    """A trace in the cell's first trial: one operation in each of these modules."""
    value = Value("d", (2,), "float32")
    operations = tuple(
        Operation(index, 1, "forward", "computed", "aten.mm.default", module, None, "", (value,), (value,))
        for index, module in enumerate(modules)
    )
    Trace("ops", cell.id, 0, 1, operations).write(trace_file(study.trial_folder(cell.id, 0)))
    Trial.of(cell, 0, 0, "cpu").write(trial_file(study.trial_folder(cell.id, 0)))


def finding(index: int, module: str, rung: str = "operation") -> dict[str, Any]:
    return {"rung": rung, "index": index, "name": "aten.mm.default", "module": module, "trials": [0, 1]}


def summary(*cells: tuple[Cell, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "cells": [
            {
                "cell": cell.id,
                "label": label,
                "config": cell.config,
                "traces": {"findings": findings} if findings else None,
            }
            for label, (cell, findings) in zip("xyz", cells, strict=False)
        ]
    }


class Runs:
    """Stands in for isolate.run: notes the trials and leaves what a child would."""

    def __init__(self, outcomes: tuple[Outcome, ...] = ()):
        self.trials: list[Trial] = []
        self.outcomes = list(outcomes)
        self.timeouts: list[float | None] = []

    def __call__(self, trial: Trial, folder: Path, where: str, timeout: float | None, say: Any) -> Record:
        self.trials.append(trial)
        self.timeouts.append(timeout)
        assert Trial.read(trial_file(folder)) == trial
        outcome = self.outcomes.pop(0) if self.outcomes else "finished"
        record = Record.of(trial, outcome, None if outcome == "finished" else "planted", "2026-12-01T00:00:00+00:00")
        record.write(record_file(folder))
        if outcome == "finished":
            write_operations(folder, [CapturedOperation(one, "aten.mm.default", 1, {}) for one in trial.capture])
        return record


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(captures.isolate, "run", made)
    return made


def test_each_cell_with_findings_is_captured_twice_and_its_like_once(tmp_path: Path, runs: Runs) -> None:
    noisy, clean, other = probed("default"), probed("deterministic"), make_cell("default", model={"name": "other"})
    study = make_study(tmp_path / "s", [(noisy, Plant()), (clean, Plant()), (other, Plant())], rounds=1)
    traced(study, noisy, ["a", "b", "c"])
    traced(study, clean, ["more", "a", "b", "c"])
    found = summary((noisy, [finding(1, "b"), finding(2, "c"), finding(0, "a", "scalar")]), (clean, []), (other, []))
    said: list[str] = []
    assert run_captures(study, found, said.append, timeout=7.0) == 3
    asked = [(trial.cell, trial.capture) for trial in runs.trials]
    assert asked == [(noisy.id, (1, 2)), (noisy.id, (1, 2)), (clean.id, (2, 3))]
    assert said[0] == "x: one more training, 1 of 2, keeps what 2 operations took and gave"
    assert runs.timeouts == [7.0] * 3
    assert [list(one.operations) for one in captures_of(study, noisy.id)] == [[1, 2], [1, 2]]
    assert len(study.records()) == 3, "a capture is no trial"
    assert run_captures(study, found, said.append) == 0, "nothing is captured twice"


def test_captures_are_read_back_with_the_trace_that_counts_them(tmp_path: Path, runs: Runs) -> None:
    cell, without = probed("default"), probed("benchmark")
    study = make_study(tmp_path / "s", [(cell, Plant()), (without, Plant())], rounds=2)
    traced(study, cell, ["a", "b"])
    run_captures(study, summary((cell, [finding(1, "b")])))
    found = [CellTraces.of(study, sample).captured for sample in samples_of(Evidence.of(study))]
    assert found[0] and found[0].config == cell.config
    assert [one.module for one in found[0].trace.operations] == ["a", "b"]
    assert [list(one.operations) for one in found[0].captures] == [[1], [1]] and found[1] is None
    trace_file(study.trial_folder(cell.id, 0)).write_bytes(b"damaged")
    assert [CellTraces.of(study, sample).captured for sample in samples_of(Evidence.of(study))] == [None, None]


def test_only_what_is_new_is_captured_when_more_is_found(tmp_path: Path, runs: Runs) -> None:
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a", "b"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    run_captures(study, summary((cell, [finding(0, "a"), finding(1, "b")])))
    assert [trial.capture for trial in runs.trials] == [(0,), (0,), (1,), (1,)]


def test_only_a_few_operations_of_different_places_are_captured(tmp_path: Path, runs: Runs) -> None:
    findings = [finding(index, f"m{index // 2}") for index in range(40)]
    assert captured_indices({"traces": {"findings": findings}}) == list(range(0, 2 * MOST_OPERATIONS, 2))
    assert captured_indices({"traces": None}) == []


@pytest.mark.parametrize(("schedule", "steps"), [("constant", 2), ("cosine", 50)])
def test_steps_that_nobody_traces_are_left_out_where_they_change_nothing(
    tmp_path: Path, runs: Runs, schedule: str, steps: int
) -> None:
    cell = probed("default", schedule=schedule)
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    assert [trial.config["train"]["steps"] for trial in runs.trials] == [steps] * 2
    assert {trial.cell for trial in runs.trials} == {cell.id}


def test_a_capture_that_fails_costs_a_line_and_one_broken_off_is_made_again(tmp_path: Path, runs: Runs) -> None:
    first, second = probed("default"), probed("benchmark")
    study = make_study(tmp_path / "s", [(first, Plant()), (second, Plant())], rounds=1)
    for cell in (first, second):
        traced(study, cell, ["a"])
    found, said = summary((first, [finding(0, "a")]), (second, [finding(0, "a")])), []  # type: ignore[var-annotated]
    runs.outcomes = ["failed", "interrupted"]
    assert run_captures(study, found, said.append) == 4
    assert said[1] == "x: 1 operation could not be captured: planted"
    assert run_captures(study, found, said.append) == 1, "the one that was interrupted, not the one that failed"
    assert [one.folder.name for one in captures_of(study, first.id)] == ["capture-002"]


def test_what_breaks_captures_as_a_whole_costs_a_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Record:
        raise StudyError("the disk is full")

    monkeypatch.setattr(captures.isolate, "run", full)
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    said: list[str] = []
    assert run_captures(study, summary((cell, [finding(0, "a")])), said.append) == 0
    assert said[-1] == "not all operations could be captured: the disk is full"


def test_a_damaged_capture_is_as_if_it_had_never_been(tmp_path: Path, runs: Runs) -> None:
    cell = probed("default")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=1)
    traced(study, cell, ["a"])
    run_captures(study, summary((cell, [finding(0, "a")])))
    write_operations(study.capture_folder(cell.id, 0), [replace(CapturedOperation(0, "x", 1, {}), index="no")])  # type: ignore[arg-type]
    assert [one.folder.name for one in captures_of(study, cell.id)] == ["capture-001"]
