"""What many tests need: the command line as users call it, in a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.record import Record
from runner.study import Study

TESTS = Path(__file__).parent
TINY = ["train.steps=10", "train.batch_size=8", "model.cifar_stem=false"]
# It ends what hangs and measures nothing: tests run beside each other, on few cores.
LIMIT_S = 900.0
# Threads that spin while they wait for each other keep the cores from those they wait for, as soon as there are more of
# them than cores: two trainings of two threads each on two cores took more than four times as long. Read when OpenMP is
# loaded, here and in everything that the tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def call(
    *arguments: str, folder: Path, timeout: float = LIMIT_S, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run `python -m ...` in a folder, with the tests' own planted modules importable."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": paths, "HYDRA_FULL_ERROR": "0", **variables}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=timeout)


def study(*arguments: str, folder: Path, **variables: str) -> Study:
    """Do a study that must go well, without MLflow unless it is asked for, and open its folder."""
    tracking = [] if any(word.startswith("tracking") for word in arguments) else ["tracking=off"]
    words = [f"study={folder / 'study'}", *tracking, *arguments]
    done = call("runner", "-m", *words, folder=folder, timeout=LIMIT_S, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return Study.open(folder / "study")


def finals(records: list[Record]) -> set[str]:
    """The distinct digests of final weights."""
    return {record.digests.final for record in records if record.digests}


def pytest_pyfunc_call() -> None:
    """Take away pytest's own variable: it changes with every test, and would give each a forkserver of its own."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One empty folder for all tests of a module."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """The address of a new MLflow store."""
    from tracked import new_store  # MLflow takes seconds to load

    return new_store(tmp_path / "store")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Networks as small as these are only slowed down by threads that wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Call with bad input: it must end with exit code 2, one message and nothing left behind. Returns the message."""

    def call_refused(*arguments: str) -> str:
        done = call("runner", "-m", *arguments, folder=tmp_path)
        assert done.returncode not in (0, None), done.stdout
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.glob("**/trial.json"))
        assert not (tmp_path / "mlflow.db").exists()
        return done.stderr

    return call_refused
