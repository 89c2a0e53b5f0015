"""A trial that fails, in whatever way, becomes a record that says so; every other trial is done."""

import math
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from faulty import Invocation, by_argument, done, started, summary
from mlflow.tracking import MlflowClient
from tracked import all_runs

from runner.layout import log_file
from runner.record import Record

MODEL = "model._target_=planted.Faulty"
KILLED = "the process ended by SIGKILL (by hand, or by the system for want of memory) and left no record"
NO_RECORD = "the process ended with exit status {} and left no record"
LATE = "not done within timeout=12 seconds"
# The outcome, and how the reason begins.
FAULTS = {
    "raise": ("failed", "RuntimeError: planted failure"),
    "evaluation": ("failed", "RuntimeError: planted failure in the evaluation"),
    "exit": ("failed", "SystemExit: 0"),
    "exit-at-once": ("failed", NO_RECORD.format(0)),
    "abort": ("failed", "the process ended by SIGABRT and left no record; the end of its log: Fatal Python error"),
    "segfault": ("failed", "the process ended by SIGSEGV and left no record; the end of its log: Fatal Python error"),
    "kill": ("failed", KILLED),
    "terminate": ("interrupted", "ended by SIGTERM"),
    "interrupt": ("failed", "KeyboardInterrupt: (raised in /"),
    "memory": ("failed", "MemoryError"),
    "hold-lock": ("timed_out", LATE),
    "backtrack": ("timed_out", LATE),
    "stop": ("timed_out", LATE),
    "flood": ("failed", NO_RECORD.format(9)),
    "remove-folder": ("failed", NO_RECORD.format(1)),
    "garbage-and-end": ("failed", NO_RECORD.format(0)),
}
HARMLESS = ["nothing", "leave-processes", "garbage", "leave-folder", "lose-folder", "lose-streams"]


@pytest.fixture(scope="module")
def faulty(module_folder: Path) -> Invocation:
    """One study with every fault, each in a cell of its own."""
    with started(
        MODEL, f"+model.args.how={','.join([*FAULTS, *HARMLESS])}", "trials=1", "timeout=12", folder=module_folder
    ) as invocation:
        assert invocation.ended() == 1, invocation.out + invocation.err
        assert not invocation.left()
    return invocation


@pytest.fixture(scope="module")
def records(faulty: Invocation) -> dict[str, Record]:
    """The record of each fault's trial."""
    return {how: one for how, (one,) in by_argument(faulty.study, "how").items()}


def ended_s(record: Record) -> float:
    """When a trial ended, in seconds since 1970."""
    return datetime.fromisoformat(record.ended).timestamp()


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_is_a_record_with_outcome_and_reason(how: str, records: dict[str, Record]) -> None:
    outcome, reason = FAULTS[how]
    assert records[how].outcome == outcome
    assert (records[how].reason or "").startswith(reason)
    assert not records[how].refused
    assert records[how].digests is records[how].speed is None


@pytest.mark.parametrize("how", HARMLESS)
def test_what_does_not_touch_the_training_costs_nothing(how: str, records: dict[str, Record]) -> None:
    assert (records[how].outcome, records[how].reason) == ("finished", None)
    assert records[how].digests == records["nothing"].digests


def test_the_end_of_the_log_says_where_it_was(faulty: Invocation, records: dict[str, Record]) -> None:
    for how in ("abort", "segfault", "interrupt"):
        assert "planted.py" in (records[how].reason or "")
    flood = records["flood"]
    assert (flood.reason or "").endswith("the last words")
    assert len(flood.reason or "") < 3000
    for how in ("raise", "evaluation", "memory"):
        log = log_file(faulty.study.trial_folder(records[how].cell, 0)).read_text()
        assert log.rstrip().endswith((records[how].reason or "").rstrip(": "))


def test_a_failure_is_named_before_the_trial_after_the_next_one_ends(
    faulty: Invocation, records: dict[str, Record]
) -> None:
    ends = [*sorted(ended_s(record) for record in records.values()), math.inf, math.inf]
    for how in FAULTS:
        record = records[how]
        log = log_file(faulty.study.trial_folder(record.cell, 0))
        said = [moment for moment, line in faulty.lines if str(log) in line]
        assert len(said) == 1
        assert said[0] < ends[ends.index(ended_s(record)) + 2]
        assert f"    {record.outcome}: {(record.reason or '').splitlines()[0]}" in faulty.out


def test_the_end_counts_and_nothing_is_a_traceback(faulty: Invocation) -> None:
    outcomes = Counter(outcome for outcome, _ in FAULTS.values())
    failed, interrupted = outcomes["failed"] + outcomes["timed_out"], outcomes["interrupted"]
    total = len(FAULTS) + len(HARMLESS)
    assert f"{failed} of {total} trials failed, {interrupted} interrupted\n" in faulty.out
    assert faulty.err == ""


def test_a_summary_has_counts_and_no_mean_over_a_hole(faulty: Invocation) -> None:
    cells = {cell["config"]["model"]["args"]["how"]: cell for cell in summary(faulty.study)["cells"]}
    assert set(cells) == {*FAULTS, *HARMLESS}
    for how, cell in cells.items():
        counts = cell["n"], cell["failed"], cell["diverged"], cell["missing"]
        assert counts == ((0, 1, 0, 0) if how in FAULTS else (1, 0, 0, 0))
        assert (cell["speed"]["step_ms"] is None) == (how in FAULTS)
        assert (cell["metrics"] == {}) == (how in FAULTS)


def test_errors_of_cuda_in_one_mode_cost_that_mode_alone(tmp_path: Path) -> None:
    words = [MODEL, "+model.args.how=cuda-memory,cudnn", "+model.args.benchmark_only=true", "trials=1"]
    invocation = done("cudnn=default,benchmark", *words, folder=tmp_path)
    assert invocation.process.returncode == 1
    assert "2 of 4 trials failed" in invocation.out
    benchmark = {cell.id: cell.config["cudnn"]["benchmark"] for cell in invocation.study.cells()}
    for how, reason in (("cuda-memory", "OutOfMemoryError: CUDA out of memory."), ("cudnn", "RuntimeError: cuDNN err")):
        found = {benchmark[record.cell]: record for record in by_argument(invocation.study, "how")[how]}
        assert (found[False].outcome, found[True].outcome) == ("finished", "failed")
        assert (found[True].reason or "").startswith(reason)


def test_divergence_alone_is_marked_and_no_failure_and_neither_is_a_warning(tmp_path: Path) -> None:
    invocation = done(MODEL, "+model.args.how=loss-nan,loss-inf,warn", "trials=1", folder=tmp_path)
    assert invocation.process.returncode == 0, invocation.out + invocation.err
    assert "0 of 3 trials failed, 2 diverged" in invocation.out
    found = {how: one for how, (one,) in by_argument(invocation.study, "how").items()}
    for how, loss in (("loss-nan", "nan"), ("loss-inf", "inf")):
        assert (found[how].outcome, found[how].reason) == ("diverged", f"the loss is {loss} at step 3")
        assert f"    diverged: the loss is {loss} at step 3" in invocation.out
    assert "1 diverged" in invocation.study.report_markdown.read_text()
    cells = {cell["config"]["model"]["args"]["how"]: cell for cell in summary(invocation.study)["cells"]}
    assert (cells["loss-nan"]["n"], cells["loss-nan"]["diverged"], cells["loss-nan"]["failed"]) == (0, 1, 0)
    assert cells["loss-nan"]["speed"]["step_ms"] is None
    assert found["warn"].outcome == "finished"
    log = log_file(invocation.study.trial_folder(found["warn"].cell, 0)).read_text()
    assert "planted warning" in log
    assert "planted words on standard error" in log


def test_a_cell_that_fails_in_its_first_step_is_tried_in_each_round_and_stops_no_other(tmp_path: Path) -> None:
    invocation = done("model._target_=planted.Plain,unimportable.Net", "trials=2", folder=tmp_path)
    assert invocation.process.returncode == 1, invocation.out + invocation.err
    assert "2 of 4 trials failed" in invocation.out
    target = {cell.id: cell.config["model"]["_target_"] for cell in invocation.study.cells()}
    outcomes = sorted((target[one.cell], one.number, one.outcome) for one in invocation.study.records())
    assert outcomes == [
        ("planted.Plain", 0, "finished"),
        ("planted.Plain", 1, "finished"),
        ("unimportable.Net", 0, "failed"),
        ("unimportable.Net", 1, "failed"),
    ]
    failed = [one for one in invocation.study.records() if one.outcome == "failed"]
    named = "model._target_=unimportable.Net: unimportable cannot be imported: RuntimeError: planted failure at import"
    assert all((one.reason or "").startswith(named) for one in failed)


def test_cells_that_all_fail_in_their_first_step_end_the_study_in_its_first_round(tmp_path: Path) -> None:
    words = [MODEL, "+model.args.how=raise", "+model.args.step=1", "trials=3"]
    invocation = done("cudnn=default,benchmark", *words, folder=tmp_path)
    assert invocation.process.returncode == 2, invocation.out + invocation.err
    assert "RuntimeError: planted failure" in invocation.err
    assert "No cell could do its first step" in invocation.err
    assert "Traceback" not in invocation.err
    assert [(record.number, record.outcome) for record in invocation.study.records()] == [(0, "failed")] * 2


def test_runs_in_mlflow_are_finished_only_for_complete_trials(tmp_path: Path) -> None:
    invocation = done(MODEL, "+model.args.how=nothing,raise,loss-nan", "trials=1", "tracking=local", folder=tmp_path)
    assert invocation.process.returncode == 1, invocation.out + invocation.err
    assert invocation.err == ""
    cells = {cell.id: cell.config["model"]["args"]["how"] for cell in invocation.study.cells()}
    found = {}
    for run in all_runs(MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")):
        level, cell = run.data.tags["level"], run.data.tags.get("cell")
        found[level, cells[cell] if cell else None] = run.info.status
    states = {"nothing": "FINISHED", "raise": "FAILED", "loss-nan": "FAILED"}
    below = {(level, how): state for level in ("cell", "trial") for how, state in states.items()}
    assert found == {("study", None): "FAILED", **below}
