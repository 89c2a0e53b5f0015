"""Being seen at work: a file with a beat, gone at the end, and no life after the study's own process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from factory import make_cell
from processes import gone, within

from runner import presence
from runner.presence import leave, present
from runner.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": 1}, [make_cell()])


def test_a_process_is_one_owner_until_it_leaves(study: Study) -> None:
    owner = present(study)
    assert present(study) == owner
    assert study.owners() == [owner]
    leave(study)
    assert study.owners() == []
    assert list((study.folder / "owners").iterdir()) == []


def test_the_beat_renews_the_file_also_one_that_was_removed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "HEARTBEAT_S", 0.02)
    owner = present(study)
    file = study.owner_file(owner.name)
    os.utime(file, (0, 0))
    assert within(10, lambda: file.stat().st_mtime > 0)
    file.unlink()
    assert within(10, file.exists)
    leave(study)


WORKER = """
import sys, time
from pathlib import Path
from runner import presence
from runner.owner import Owner
from runner.study import Study
presence.HEARTBEAT_S = 0.05
study = Study.open(Path(sys.argv[1]))
presence.end_with(next(iter(study.owners())))
presence.present(study)
print("present", flush=True)
time.sleep(600)
"""
INVOKER = """
import subprocess, sys, time
from pathlib import Path
from runner.presence import present
from runner.study import Study
present(Study.open(Path(sys.argv[1])))
between = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
subprocess.Popen([sys.executable, "-c", between, "-c", {worker!r}, sys.argv[1]])
time.sleep(600)
"""


def test_a_launchers_worker_ends_with_the_studys_process_also_through_another_between(study: Study) -> None:
    command = [sys.executable, "-c", INVOKER.format(worker=WORKER), str(study.folder)]
    invoker = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert invoker.stdout is not None
    assert invoker.stdout.readline() == b"present\n"
    worker = next(owner.pid for owner in study.owners() if owner.pid != invoker.pid)
    invoker.send_signal(signal.SIGKILL)
    invoker.wait()
    assert gone([worker], 10)
    assert study.owners() == []


def test_a_job_that_does_not_descend_from_the_studys_process_goes_on_without_it(study: Study) -> None:
    invoker = subprocess.Popen([sys.executable, "-c", INVOKER.format(worker="pass"), str(study.folder)])
    assert within(30, lambda: bool(study.owners()))
    job = subprocess.Popen([sys.executable, "-c", WORKER, str(study.folder)], stdout=subprocess.PIPE)
    assert job.stdout is not None
    assert job.stdout.readline() == b"present\n"
    invoker.kill()
    invoker.wait()
    with pytest.raises(subprocess.TimeoutExpired):
        job.wait(1)
    job.kill()
    job.wait()
