"""SLURM: a study gives the same as anywhere, and what SLURM ends is a record. Starts a SLURM of this machine alone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import TESTS, call, finals, study
from processes import within

from runner.study import Study

SCRIPTS = TESTS.parent / "scripts"
MISSING = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(MISSING), reason=f"needs Debian's slurm-wlm; missing: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start SLURM's daemons"),
    pytest.mark.usefixtures("slurm"),
]

SMALL = ["train.steps=4", "train.batch_size=8", "threads=1"]
LAUNCHER = ["hydra/launcher=slurm", "hydra.launcher.gpus_per_node=null"]
Called = Future["subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """SLURM, found by everything that the tests start."""
    folder = tmp_path_factory.mktemp("slurm")
    script = str(SCRIPTS / "slurm_start.sh")
    with pytest.MonkeyPatch.context() as patch:
        try:
            done = subprocess.run([script, str(folder)], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            patch.setenv("SLURM_CONF", done.stdout.splitlines()[-1].removeprefix("export SLURM_CONF="))
            yield
        finally:
            subprocess.run([script, "--stop", str(folder)], check=True, timeout=120)


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    """For a command that works while the test goes on."""
    with ThreadPoolExecutor() as pool:
        yield pool


def waiting_once(folder: Path, *arguments: str) -> tuple[list[str], Path]:
    """The command of a study of which one trial never ends, and the file in which it names its job."""
    marker = folder / "marker"
    model = ["model=custom", "model._target_=slow_model.WaitsOnce", f"+model.args.marker={marker}"]
    words = ["runner", "-m", f"study={folder / 'study'}", "tracking=off", *SMALL, *model, *LAUNCHER]
    return [*words, *arguments], marker


def job_in(marker: Path) -> str:
    """The job that a trial waits in."""
    assert within(600, lambda: marker.is_file() and marker.read_text() != "")
    return marker.read_text()


def outcomes(folder: Path) -> list[str]:
    """How the trials of a study ended, sorted."""
    return sorted(record.outcome for record in Study.open(folder / "study").records())


def array(*arguments: str, tasks: int, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Have scripts/slurm_array.sh work on a study and wait for its end."""
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["sbatch", "--wait", f"--array=0-{tasks - 1}", "--gpus-per-node=0", "--cpus-per-task=1"]
    command += [str(SCRIPTS / "slurm_array.sh"), str(folder / "study"), *arguments]
    environ = {**os.environ, "PATH": paths, "PYTHONPATH": str(TESTS)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=900)


def test_a_study_by_jobs_equals_one_without_slurm(tmp_path: Path) -> None:
    words = ["cudnn=default,deterministic", *SMALL, "model.cifar_stem=false"]
    done = study("trials=2", *words, *LAUNCHER, folder=tmp_path)
    assert outcomes(tmp_path) == ["finished"] * 4
    assert len({(record.cell, record.number) for record in done.records()}) == 4
    (tmp_path / "here").mkdir()
    here = study("trials=1", *words, folder=tmp_path / "here")
    assert {cell.id for cell in done.cells()} == {cell.id for cell in here.cells()}
    assert finals(done.records()) == finals(here.records())


def test_every_job_is_told_one_study_folder(tmp_path: Path) -> None:
    done = study("cudnn=default,benchmark", "trials=1", *SMALL, "model.cifar_stem=false", *LAUNCHER, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["study"]
    told = [line for path in done.folder.glob("hydra/*/*/config/config.yaml") for line in path.read_text().splitlines()]
    assert [line for line in told if line.startswith("study:")] == [f"study: {done.folder}"] * 2


@pytest.mark.slow
def test_a_cancelled_job_is_an_interrupted_trial_and_can_be_continued(
    tmp_path: Path, background: ThreadPoolExecutor
) -> None:
    words, marker = waiting_once(tmp_path, "cudnn=default,benchmark", "trials=2")
    working: Called = background.submit(call, *words, folder=tmp_path)
    subprocess.run(["scancel", job_in(marker)], check=True)
    done = working.result()
    assert done.returncode != 0, done.stdout + done.stderr
    assert outcomes(tmp_path) == ["finished"] * 3 + ["interrupted"]
    again = call(*words, folder=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert outcomes(tmp_path) == ["finished"] * 4


@pytest.mark.slow
def test_a_trial_whose_jobs_time_is_over_is_interrupted(tmp_path: Path) -> None:
    # One minute is the least that SLURM grants. It looks every half minute, and warns a half minute early at that: a
    # job must not be warned before it has begun.
    limit = ["hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=1"]
    words, _ = waiting_once(tmp_path, "trials=1", *limit)
    done = call(*words, folder=tmp_path)
    assert done.returncode != 0, done.stdout + done.stderr
    assert outcomes(tmp_path) == ["interrupted"]


def test_the_tasks_of_an_array_share_a_study_round_by_round(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    model = ["model=custom", "model._target_=slow_model.WaitsForOthers"]
    model += [f"+model.args.folder={tmp_path / 'tasks'}", "+model.args.tasks=2"]
    done = array("cudnn=default,benchmark", "trials=4", *SMALL, *model, tasks=2, folder=tmp_path)
    assert done.returncode == 0, "\n".join(path.read_text() for path in tmp_path.glob("slurm-*.out"))
    records = Study.open(tmp_path / "study").records()
    assert [record.outcome for record in records] == ["finished"] * 8
    assert len({record.process["pid"] for record in records}) == 8
    tasks = {number: {r.process["interpreter"] for r in records if r.number == number} for number in range(4)}
    assert [len(interpreters) for interpreters in tasks.values()] == [1] * 4
    assert len(set.union(*tasks.values())) == 2
