"""How attached scripts end: each is a record that says so, and nothing of it stays behind."""

import subprocess
from pathlib import Path

import pytest
from attachments import PYTHON, attach, log_of, script, series_of
from processes import gone

from runner.record import Record
from runner.worker import attached

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""


def ended(folder: Path, text: str, **asked: object) -> Record:
    return attach(script(folder, text), folder / "trials", home=folder, **asked)  # type: ignore[arg-type]


def test_a_script_is_stopped_after_its_steps_and_closes_in_good_order(tmp_path: Path) -> None:
    text = f"""{TRAIN}
import atexit, sys, threading, subprocess
atexit.register(lambda: print("closed"))
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
open("sleeper", "w").write(str(sleeper.pid))
print("x" * 3_000_000)
try:
    for _ in range(1000):
        step()
finally:
    print("finally")
"""
    record = ended(tmp_path, text, steps=5)
    assert (record.outcome, record.reason, record.doctor) == ("finished", None, [])
    assert record.process["status"] == 0
    assert record.digests is not None and set(record.digests.steps) == {"1", "2", "4"}
    assert record.speed is not None and record.speed.steps == 5
    assert len(series_of(tmp_path / "trials").loss) == 5
    assert log_of(tmp_path / "trials").endswith("finally\nclosed\n")
    assert gone([int((tmp_path / "sleeper").read_text())])
    assert not (tmp_path / "trials" / "trial-0" / "attached").exists()


def test_a_script_that_catches_everything_or_steps_in_a_thread_ends_too(tmp_path: Path) -> None:
    text = f"""{TRAIN}
import threading
def work():
    for _ in range(1000):
        try:
            step()
        except:
            print("caught")
thread = threading.Thread(target=work)
thread.start()
try:
    thread.join()
except KeyboardInterrupt:
    thread.join()
"""
    record = ended(tmp_path, text, steps=5)
    assert (record.outcome, record.reason) == ("finished", None)
    assert "caught" in log_of(tmp_path / "trials")


@pytest.mark.parametrize(
    ("end", "status", "outcome", "reason"),
    [
        ("sys.exit(0)", 0, "finished", None),
        ("os._exit(0)", 0, "finished", None),
        ("sys.exit(3)", 3, "failed", "the command ended with exit status 3 after 3 of 10 steps"),
        ("raise ValueError('planted')", 1, "failed", "with exit status 1 after 3 of 10 steps: ValueError: planted"),
        pytest.param("os.kill(os.getpid(), 9)", -9, "failed", "by SIGKILL (by hand, or", marks=pytest.mark.slow),
    ],
)
def test_a_script_that_ends_by_itself_after_three_steps(
    end: str, status: int, outcome: str, reason: str | None, tmp_path: Path
) -> None:
    record = ended(tmp_path, f"{TRAIN}\nimport os, sys\nfor _ in range(3):\n    step()\n{end}\n")
    assert (record.outcome, record.process["status"], record.refused) == (outcome, status, False)
    assert (record.reason is None) if reason is None else (reason in str(record.reason))
    if outcome == "finished":
        assert record.speed is not None and record.speed.steps == 3
        assert record.doctor == ["the script ends after 3 optimizer steps; 10 were to be watched"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nothing_of_this_name", "before its first optimizer step: ModuleNotFoundError: No module named"),
        ("print('done')", "the command ended well, but no optimizer step was seen"),
        ("import os; os.abort()", "by SIGABRT before its first optimizer step"),
    ],
)
def test_a_script_without_a_step_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    record = ended(tmp_path, text)
    assert (record.outcome, record.refused) == ("failed", True)
    assert reason in str(record.reason)


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), 40)", "by signal 40"),  # a real-time signal, which has no name
        ("os.execv(sys.executable, [sys.executable, '-c', ''])", "with exit status 0"),
    ],
)
def test_a_script_whose_process_vanishes_after_its_first_steps(end: str, how: str, tmp_path: Path) -> None:
    record = ended(tmp_path, f"{TRAIN}\nimport os, sys\nstep()\nstep()\n{end}\n")
    assert (record.outcome, record.refused) == ("failed", False)
    wanted = f"the command ended {how} after its first optimizer step, and nothing of it is left"
    assert str(record.reason).startswith(wanted), record.reason


def test_a_script_that_removes_the_folder_in_which_it_works_is_none_the_worse(tmp_path: Path) -> None:
    gone_folder = "import os, tempfile\nplace = tempfile.mkdtemp()\nos.chdir(place)\nos.rmdir(place)\n"
    late = "torch.nn.Linear(1, 1)\ntorch.manual_seed(1)\ntorch.backends.cudnn.benchmark = True\n"
    record = ended(tmp_path, f"{TRAIN}\n{gone_folder}{late}for _ in range(20):\n    step()\n", steps=3)
    assert (record.outcome, record.reason) == ("finished", None)
    assert record.doctor == ["train.py:17 sets torch.backends.cudnn.benchmark = True; held as the cell has it"]


def test_a_command_or_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    record = attach([PYTHON, "missing.py"], tmp_path / "one", home=tmp_path)
    assert record.refused and "missing.py" in str(record.reason) and "No such file" in str(record.reason)
    record = attach(["no-such-command"], tmp_path / "two", home=tmp_path)
    assert (record.refused, record.reason) == (True, "no-such-command: No such file or directory")


def test_a_command_that_goes_on_after_its_steps_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "PATIENCE_S", 0.2)
    process = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(3600)"])
    (tmp_path / "result.json").touch()
    attached._wait(process, tmp_path / "result.json")
    assert process.returncode == -9


def test_a_script_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    text = """
import os, subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
open("pids", "w").write(f"{os.getpid()} {other.pid}")
time.sleep(3600)
"""
    record = ended(tmp_path, text, timeout=5)
    assert (record.outcome, record.reason) == ("timed_out", "not done within timeout=5 seconds")
    assert gone(map(int, (tmp_path / "pids").read_text().split()))


def test_other_words_than_python_in_a_package_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell script calls `python -m`, with the user's own start-up code, words with spaces, a folder of its own."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; print('the own one', file=sys.stderr)")
    (tmp_path / "src" / "runner").mkdir(parents=True)  # a name of ours, which is the user's there
    (tmp_path / "src" / "runner" / "__init__.py").write_text("")
    (tmp_path / "src" / "runner" / "__main__.py").write_text(
        f"import sys\nprint('words', sys.argv[1:])\n{TRAIN}\nfor _ in range(20):\n    step()\n"
    )
    shell = f'cd src\nexport CUBLAS_WORKSPACE_CONFIG=:16:8\n"{PYTHON}" -m runner "$@"\n'
    (tmp_path / "train.sh").write_text(shell)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    record = attach(["bash", "train.sh", "a b", "$HOME", "x'y"], tmp_path / "trials", home=tmp_path, steps=4)
    assert record.outcome == "finished", record.reason
    log = log_of(tmp_path / "trials")
    assert "the own one" in log and """words ['a b', '$HOME', "x'y"]""" in log
    assert record.doctor == ["the command sets CUBLAS_WORKSPACE_CONFIG=:16:8 before Python begins"]
    assert record.environment["workspace"] == ":16:8"
