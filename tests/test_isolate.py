"""One trial in one process of its own: whatever it does, what comes back is a record."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composed import planted_cell, planted_config
from conftest import TESTS
from processes import gone, within

from runner import isolate
from runner.cell import Cell
from runner.child import ForkServer
from runner.layout import log_file, record_file, series_file
from runner.record import Record
from runner.series import Series
from runner.study import Study
from runner.trial import Trial

Run = Callable[..., tuple[Record, Path]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run one trial of a cell; returns its record and its folder."""

    def run_trial(cell: Cell, timeout: float | None = 120) -> tuple[Record, Path]:
        trial = Trial.of(cell, 0, 0, "cpu")
        folder = Study.ask(tmp_path / "study", {"rounds": 1}, [cell]).claim(trial, "me")
        assert folder is not None
        returned = isolate.run(trial, folder, str(TESTS), timeout)
        assert returned == Record.read(record_file(folder))
        assert (returned.cell, returned.number, returned.seeds) == (cell.id, 0, trial.seeds)
        return returned, folder

    return run_trial


def failing(how: str, step: int = 3, *words: str) -> Cell:
    """A cell whose model fails in this step, in this way."""
    return planted_cell("Fails", f"+model.args.step={step}", f"+model.args.how={how}", *words)


def test_a_trial_that_goes_well_leaves_everything(run: Run) -> None:
    record, folder = run(planted_cell("Plain"))
    assert (record.outcome, record.reason, record.refused) == ("finished", None, False)
    assert record.process["pid"] != os.getpid()
    assert record.process["isolation"] == "forkserver"
    assert record.flags["requested"].items() <= record.flags["after"].items()
    assert record.digests is not None
    assert set(record.digests.steps) == {"1", "2", "4"}
    assert len(Series.read(series_file(folder)).loss) == 6


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "the process ended with exit status 7 and left no record"),
        ("kill", "the process ended by SIGKILL (by hand, or by the system for want of memory) and left no record"),
        ("sys.exit", "SystemExit: 3"),
        ("raise", "RuntimeError: planted failure in step 3"),
    ],
)
def test_a_trial_that_fails_leaves_a_record_with_the_reason(how: str, reason: str, run: Run) -> None:
    record, folder = run(failing(how))
    assert record.outcome == "failed"
    assert record.reason is not None
    assert record.reason.startswith(reason)
    assert not record.refused
    assert record.digests is None
    assert record.speed is None
    assert not series_file(folder).exists()
    assert record.process["pid"] not in (None, os.getpid())


def test_an_exception_leaves_its_traceback_and_what_was_known_by_then(run: Run) -> None:
    record, folder = run(failing("raise"))
    assert "planted failure in step 3" in log_file(folder).read_text()
    assert "Traceback" in log_file(folder).read_text()
    assert record.environment["device"] == "cpu"
    assert set(record.flags) == {"default", "requested", "before"}


def test_the_end_of_the_log_is_the_reason_when_there_is_no_other(run: Run) -> None:
    record, _ = run(planted_cell("Fails", "+model.args.step=1", "+model.args.how=crash"))
    assert record.reason is not None
    assert "by SIGABRT" in record.reason
    assert "Fatal Python error: Aborted" in record.reason


def test_an_error_in_the_first_step_says_that_the_settings_do_not_fit(run: Run) -> None:
    record, _ = run(failing("raise", step=1))
    assert record.refused
    assert record.reason is not None
    where = "before the first step was done, on image data with inputs of (1, 8, 8) and 10 classes"
    assert record.reason == f"RuntimeError: planted failure in step 1 ({where})"


def test_a_loss_that_is_no_number_is_a_divergence_and_keeps_its_series(run: Run) -> None:
    record, folder = run(failing("diverge"))
    assert (record.outcome, record.reason) == ("diverged", "the loss is nan at step 3")
    assert not record.complete
    loss = Series.read(series_file(folder)).loss
    assert np.isfinite(loss[:2]).all()
    assert np.isnan(loss[2:]).all()


def test_a_trial_that_takes_too_long_is_ended(run: Run) -> None:
    record, _ = run(failing("hang", 1), timeout=2.5)
    assert (record.outcome, record.reason) == ("timed_out", "not done within timeout=2.5 seconds")
    assert gone([record.process["pid"]])


def test_equal_trials_have_equal_bits_and_processes_of_their_own(tmp_path: Path) -> None:
    cell = planted_cell("Plain")
    study = Study.ask(tmp_path / "study", {"rounds": 2}, [cell])
    for number in range(2):
        trial = Trial.of(cell, number, 0, "cpu")
        folder = study.claim(trial, "me")
        assert folder is not None
        isolate.run(trial, folder, str(TESTS), 120)
    one, other = study.records()
    assert one.digests == other.digests
    assert one.process["pid"] != other.process["pid"]
    assert one.process["interpreter"] == other.process["interpreter"]
    assert one.environment == other.environment


def test_a_new_interpreter_has_the_variables_from_its_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    record, _ = run(planted_cell("Plain", "isolation=spawn", "determinism=full", "threads=2"))
    assert record.outcome == "finished"
    assert record.environment["hash_seed"] == "random"
    assert record.environment["workspace"] == ":4096:8"
    assert record.environment["threads"] == 2
    assert record.flags["after"]["algorithms"] is True
    assert (record.process["isolation"], record.process["torch_preloaded"]) == ("spawn", False)


def variables(*words: str) -> dict[str, str]:
    return isolate.environ(planted_config("Plain", *words))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which none of the variables is set."""
    for name in ("PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_hash_seed_is_fixed_for_forkservers_and_left_to_new_interpreters(bare: pytest.MonkeyPatch) -> None:
    assert variables("isolation=forkserver")["PYTHONHASHSEED"] == "0"
    assert "PYTHONHASHSEED" not in variables("isolation=spawn")
    bare.setenv("PYTHONHASHSEED", "7")
    assert {variables(f"isolation={kind}")["PYTHONHASHSEED"] for kind in ("forkserver", "spawn")} == {"7"}


def test_the_workspace_is_set_where_it_is_asked_for(bare: pytest.MonkeyPatch) -> None:
    assert "CUBLAS_WORKSPACE_CONFIG" not in variables()
    assert variables("determinism=full")["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert variables("determinism.workspace=':16:8'")["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    bare.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    assert variables()["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    assert variables("determinism=full")["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_threads_are_set_and_other_variables_stay(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("PLANTED", "yes")
    bare.setenv("OMP_NUM_THREADS", "9")
    found = variables("threads=3")
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["PLANTED"] == "yes"
    assert os.environ["OMP_NUM_THREADS"] == "9"


def test_what_mlflow_sets_when_it_is_loaded_starts_no_second_forkserver(bare: pytest.MonkeyPatch) -> None:
    before = variables()
    bare.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    assert variables() == before


def test_a_forkserver_loads_what_trials_need_and_nothing_that_they_must_not(tmp_path: Path) -> None:
    request = {"call": "called:describe", "argument": str(tmp_path / "seen"), "log": str(tmp_path / "log.txt")}
    isolate.server(planted_config(), str(TESTS)).call(request, 120)
    loaded = set(json.loads((tmp_path / "seen").read_text())["modules"])
    assert set(isolate.PRELOADED) <= loaded
    assert "torch" in loaded
    assert not loaded & {"mlflow", "hydra", "omegaconf", "runner.tracking", "runner.report", "runner.sweep", "planted"}


@pytest.mark.parametrize(
    ("dataset", "due"),
    [
        ({"name": "digits", "view": "image"}, {"sklearn.datasets"}),
        ({"name": "mask_folder", "view": "mask"}, {"torchmetrics", "runner.worker.mean_iou"}),
        ({"name": "synthetic", "view": "image"}, set()),
    ],
)
def test_what_only_some_data_need_is_loaded_before_the_fork_for_them_alone(
    dataset: dict[str, str], due: set[str], tmp_path: Path
) -> None:
    rare = {"sklearn.datasets", "torchmetrics", "runner.worker.mean_iou"}
    request = {"call": "called:describe", "argument": str(tmp_path / "seen"), "log": str(tmp_path / "log.txt")}
    server = ForkServer(isolate.environ(planted_config()), list(isolate.PRELOADED), str(TESTS))
    try:
        server.call({**request, "modules": isolate.needed({"dataset": dataset})}, 120)
    finally:
        server.close()
    assert rare & set(json.loads((tmp_path / "seen").read_text())["modules"]) == due


PARENT = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from pathlib import Path
from runner import isolate
from runner.layout import trial_file
from runner.trial import Trial
folder = Path({folder!r})
isolate.PRELOADED = ()
isolate.run(Trial.read(trial_file(folder)), folder, {tests!r}, None)
"""


def test_ctrl_c_ends_the_trial_and_leaves_a_record_that_says_so(tmp_path: Path) -> None:
    cell = failing("hang", 1)
    folder = Study.ask(tmp_path / "study", {"rounds": 1}, [cell]).claim(Trial.of(cell, 0, 0, "cpu"), "me")
    assert folder is not None
    code = PARENT.format(tests=str(TESTS), folder=str(folder))
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        assert within(60, log_file(folder).exists)
        children = descendants(parent.pid)
        assert len(children) == 2  # the forkserver and the trial
        parent.send_signal(signal.SIGINT)
        assert parent.wait(30) == -signal.SIGINT
        assert gone(children)
    finally:
        parent.kill()
        parent.wait()
    record = Record.read(record_file(folder))
    assert (record.outcome, record.reason) == ("interrupted", "interrupted from the keyboard")


def descendants(pid: int) -> list[int]:
    """The processes that this one started, and those that they started."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(one for child in children for one in descendants(child))]


def test_a_record_of_a_trial_that_left_none_has_the_times_of_its_start_and_end(run: Run) -> None:
    record, _ = run(failing("exit"))
    moments: list[Any] = [record.started, record.ended]
    assert moments == sorted(moments)
    assert all(moment.endswith("+00:00") for moment in moments)
