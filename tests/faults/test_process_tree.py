"""Whatever ends a study, no process of it stays; what was finished stays, and the next start completes the rest."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import finals
from faulty import Invocation, done, eventually, started, summary
from mlflow.entities import Run
from mlflow.tracking import MlflowClient
from tracked import all_runs

from runner.study import Study

# Two modes; each trial has a child, a daemon and an orphan.
WORDS = ["cudnn=default,deterministic", "model._target_=planted.Held", "+model.args.folder=."]
WORKERS = ["dataset.workers=2", "dataset.resident=false"]
ONE, TWO = "trials=1", "trials=2"
LAUNCHERS = {"joblib": ["hydra/launcher=joblib"], "submitit": ["hydra/launcher=submitit_local"]}
# Python itself ends by SIGINT, which a shell shows as 130 too, when Ctrl-C has hit some text that it was compiling.
INTERRUPTED = (130, -signal.SIGINT)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture(scope="module")
def weights(module_folder: Path) -> set[str]:
    """The final weights of an undisturbed study."""
    invocation = done(*WORDS, ONE, folder=module_folder)
    assert invocation.process.returncode == 0, invocation.out + invocation.err
    return finals(invocation.study.records())


@contextmanager
def held(*words: str, folder: Path, how: str = "wait") -> Iterator[Invocation]:
    """A study that has finished a trial and stays in the next one, in step 3."""
    (folder / "hold").write_text(f"1 {how}")
    with started(*WORDS, *words, folder=folder) as invocation:
        assert eventually(600, lambda: bool(pids(folder, "held")) and outcomes(folder)["finished"] > 0), invocation.err
        yield invocation


def pids(folder: Path, state: str) -> list[int]:
    """The trials in this state, the oldest first."""
    files = sorted(folder.glob(f"{state}-*"), key=lambda file: file.stat().st_mtime)
    return [int(file.name.partition("-")[2]) for file in files]


def outcomes(folder: Path) -> Counter[str]:
    """How often each outcome was recorded."""
    return Counter(record.outcome for record in Study(folder / "s").records())


def finished(folder: Path) -> dict[tuple[str, int], object]:
    """The processes of the finished trials."""
    records = Study(folder / "s").records()
    return {(one.cell, one.number): one.process["pid"] for one in records if one.complete}


def send(invocation: Invocation, number: signal.Signals) -> None:
    """End it: by Ctrl-C or the closing of a terminal, which reach the whole group, or by `kill`."""
    if number in (signal.SIGINT, signal.SIGHUP):
        os.killpg(invocation.process.pid, number)
    else:
        invocation.process.send_signal(number)


def check_closed(invocation: Invocation, number: signal.Signals) -> None:
    """It must have ended in good order, with everything that it did."""
    folder = invocation.folder
    assert invocation.ended() == CODES[number], invocation.out + invocation.err
    assert invocation.left() == {}
    assert "/runner/" not in invocation.err  # a traceback of ours; submitit's own process shows one after Ctrl-C
    found = outcomes(folder)
    assert set(found) == {"finished", "interrupted"}, found
    cells = summary(invocation.study)["cells"]
    assert sum(cell["n"] for cell in cells) == found["finished"]
    assert sum(cell["failed"] for cell in cells) == found["interrupted"]
    assert invocation.study.owners() == []


def check_completed(folder: Path, before: dict[tuple[str, int], object], weights: set[str], *words: str) -> None:
    """The same command completes the study, and does nothing again that was done."""
    (folder / "hold").unlink()
    again = done(*WORDS, *words, folder=folder)
    assert again.process.returncode == 0, again.out + again.err
    assert outcomes(folder) == {"finished": 2 * again.study.asked()["rounds"]}
    assert before
    assert before.items() <= finished(folder).items()
    assert finals(again.study.records()) == weights


@pytest.mark.parametrize(
    ("number", "how", "isolation"),
    [
        (signal.SIGINT, "wait", "forkserver"),
        pytest.param(signal.SIGINT, "wait", "spawn", marks=pytest.mark.slow),
        (signal.SIGINT, "hold-lock", "forkserver"),
        (signal.SIGTERM, "wait", "forkserver"),
        pytest.param(signal.SIGHUP, "wait", "forkserver", marks=pytest.mark.slow),
    ],
)
def test_a_study_that_is_told_to_end_closes_in_good_order(
    number: signal.Signals, how: str, isolation: str, tmp_path: Path
) -> None:
    with held(f"isolation={isolation}", *WORKERS, ONE, folder=tmp_path, how=how) as invocation:
        send(invocation, number)
        check_closed(invocation, number)
    (broken,) = (record for record in invocation.study.records() if not record.complete)
    words = {signal.SIGINT: "interrupted from the keyboard"}
    assert broken.reason == words.get(number, f"ended by {number.name}")
    assert f"interrupted: {broken.reason}" in invocation.out


def test_ctrl_c_twice_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    with held(ONE, folder=tmp_path) as invocation:
        send(invocation, signal.SIGINT)
        time.sleep(0.1)
        send(invocation, signal.SIGINT)
        assert invocation.ended() in INTERRUPTED
        assert invocation.left() == {}
    assert "Traceback" not in invocation.err
    assert outcomes(tmp_path)["finished"] == 1


def test_ctrl_c_in_the_door_leaves_nothing(tmp_path: Path) -> None:
    with started(*WORDS, ONE, "tracking=local", folder=tmp_path) as invocation:
        assert eventually(600, lambda: len(invocation.tree()) > 1)  # the forkserver is there
        send(invocation, signal.SIGINT)
        assert invocation.ended() in INTERRUPTED, invocation.err
        assert invocation.left() == {}
    assert invocation.out + invocation.err == ""
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("isolation", ["forkserver", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_study_that_was_killed_is_completed_by_the_same_command(
    isolation: str, tmp_path: Path, weights: set[str]
) -> None:
    words = [f"isolation={isolation}", *WORKERS, TWO]
    with held(*words, folder=tmp_path) as invocation:
        invocation.process.kill()
        assert invocation.left() == {}
    before = finished(tmp_path)
    check_completed(tmp_path, before, weights, *words)
    aside = list((tmp_path / "s").glob("cells/*/trial-*.*/record.json"))
    assert len(aside) == 1
    assert "its process was killed" in aside[0].read_text()


def test_a_killed_forkserver_and_a_killed_trial_cost_a_trial_each(tmp_path: Path, weights: set[str]) -> None:
    # Daemons outlive a killed forkserver: nobody is left who knows of them.
    with held("+model.args.daemons=false", *WORKERS, TWO, folder=tmp_path) as invocation:
        (trial,) = pids(tmp_path, "held")
        server = int(Path(f"/proc/{trial}/stat").read_text().rpartition(")")[2].split()[1])
        before = invocation.tree() - {invocation.process.pid}
        os.kill(server, signal.SIGKILL)
        assert eventually(600, lambda: len(pids(tmp_path, "held")) == 2)
        assert not before & invocation.tree()
        os.kill(pids(tmp_path, "held")[1], signal.SIGKILL)
        (tmp_path / "hold").unlink()
        assert invocation.ended() == 1, invocation.err
        assert invocation.left() == {}
    assert invocation.err == ""
    assert outcomes(tmp_path) == {"finished": 2, "failed": 2}
    assert [one.reason.partition(";")[0] for one in invocation.study.records() if one.failed and one.reason] == [
        "the interpreter for the trials ended with status -9: ",
        "the process ended by SIGKILL (by hand, or by the system for want of memory) and left no record",
    ]
    assert finals(invocation.study.records()) == weights


@pytest.mark.parametrize(
    ("number", "launcher"),
    [
        (signal.SIGINT, "joblib"),
        (signal.SIGTERM, "submitit"),
        pytest.param(signal.SIGINT, "submitit", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "joblib", marks=pytest.mark.slow),
    ],
)
def test_a_study_under_a_launcher_closes_in_good_order(number: signal.Signals, launcher: str, tmp_path: Path) -> None:
    with held(*LAUNCHERS[launcher], ONE, folder=tmp_path) as invocation:
        send(invocation, number)
        check_closed(invocation, number)


@pytest.mark.parametrize("launcher", ["joblib", pytest.param("submitit", marks=pytest.mark.slow)])
def test_a_study_under_a_launcher_that_was_killed_is_completed(
    launcher: str, tmp_path: Path, weights: set[str]
) -> None:
    words = [*LAUNCHERS[launcher], ONE]
    with held(*words, folder=tmp_path) as invocation:
        invocation.process.kill()
        assert invocation.left() == {}
    check_completed(tmp_path, finished(tmp_path), weights, *words)


def test_a_job_that_begins_after_the_study_was_killed_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "hold").write_text("0 wait")
    with started(*WORDS, ONE, *LAUNCHERS["submitit"], folder=tmp_path) as invocation:
        # The study, the forkserver of its door, and two processes of submitit's for each job.
        assert eventually(600, lambda: len(invocation.tree()) > 4)
        invocation.process.kill()
        assert invocation.left() == {}


def states(folder: Path) -> dict[str, Counter[str]]:
    """The states of the runs in the store, by the folder in which their study was begun."""
    runs = all_runs(MlflowClient(f"sqlite:///{folder}/mlflow.db"))
    begun = {run.data.tags["study"]: Path(run.data.tags["study_folder"]).parent.name for run in runs if _is_top(run)}
    found: dict[str, Counter[str]] = {name: Counter() for name in begun.values()}
    for run in runs:
        found[begun[run.data.tags["study"]]][run.info.status] += 1
    return found


def _is_top(run: Run) -> bool:
    return bool(run.data.tags["level"] == "study")


def test_no_run_in_mlflow_runs_after_sigterm(tmp_path: Path) -> None:
    with held("tracking=local", ONE, folder=tmp_path) as invocation:
        send(invocation, signal.SIGTERM)
        check_closed(invocation, signal.SIGTERM)
    # The study is killed with a cell and its only trial; the other cell is finished with its trial.
    assert states(tmp_path) == {tmp_path.name: {"KILLED": 3, "FINISHED": 2}}


def test_the_next_study_ends_the_runs_of_a_dead_one_and_none_of_a_living_one(tmp_path: Path) -> None:
    store = [ONE, "tracking=local", f"tracking.uri=sqlite:///{tmp_path}/mlflow.db"]
    for name in ("dead", "living", "other"):
        (tmp_path / name).mkdir()
    with held(*store, folder=tmp_path / "dead") as dead:
        dead.process.kill()
        assert dead.left() == {}
    assert states(tmp_path) == {"dead": {"RUNNING": 2, "FINISHED": 2}}
    with held(*store, folder=tmp_path / "living") as living:
        other = done(*store, *WORDS, folder=tmp_path / "other")
        assert other.process.returncode == 0, other.out + other.err
        assert states(tmp_path) == {
            "dead": {"KILLED": 2, "FINISHED": 2},
            "living": {"RUNNING": 2, "FINISHED": 2},
            "other": {"FINISHED": 5},
        }
        (living.folder / "hold").unlink()
        assert living.ended() == 0, living.out + living.err
    assert states(tmp_path)["living"] == {"FINISHED": 5}
