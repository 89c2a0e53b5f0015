"""Several invocations on one study: each trial is done once, a round by one of them, and the dead are taken over."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from launching import PLAIN, SLOW, at_work, done, ended, finals, pids, rounds_by_invocation, set_aside, start, trials
from processes import within

from runner.claim import Claim, claim_of
from runner.layout import record_file
from runner.owner import HEARTBEAT_TIMEOUT_S, Owner
from runner.study import Study

FORTY = ["cudnn=glob(*)", *SLOW, "seeds=all", "trials=10", "study=s"]


@pytest.fixture(scope="module")
def undisturbed(module_folder: Path) -> dict[tuple[str, int], str]:
    """The weights of a study that one invocation does alone."""
    code, said = done(*FORTY, "+model.args.step_s=0", folder=module_folder)
    assert code == 0, said
    return weights(Study(module_folder / "s"))


def weights(study: Study) -> dict[tuple[str, int], str]:
    """The final weights by mode and round: the cells of studies that differ in the step's length have other ids."""
    modes = {cell.id: json.dumps(cell.config["cudnn"], sort_keys=True) for cell in study.cells()}
    return {(modes[cell], number): final for (cell, number), final in finals(study).items()}


def test_four_at_once_do_every_trial_once_and_each_round_alone(
    undisturbed: dict[tuple[str, int], str], tmp_path: Path
) -> None:
    together = [start(*FORTY, folder=tmp_path) for _ in range(4)]
    said = [ended(process) for process in together]
    study = Study(tmp_path / "s")
    assert [code for code, _ in said] == [0] * 4, said
    assert not any("Traceback" in text for _, text in said)
    assert len(study.records()) == 40 and len(set(pids(study).values())) == 40
    assert len(trials(study)) == 40 and set_aside(study) == []
    by_invocation = rounds_by_invocation(study)
    began = sorted(trial for trials_ in by_invocation.values() for trial in trials_)
    assert len(began) == len(set(began)) == 40
    rounds = [{number for number, _ in trials_} for trials_ in by_invocation.values()]
    assert len(rounds) > 1 and sum(map(len, rounds)) == 10
    assert weights(study) == undisturbed
    assert list((study.folder / "rounds").iterdir()) == list((study.folder / "owners").iterdir()) == []
    assert json.loads(study.summary_json.read_text())["trials"] == {"asked": 40, "there": 40}


def test_the_rest_do_all_when_one_is_killed(undisturbed: dict[tuple[str, int], str], tmp_path: Path) -> None:
    together, study = [start(*FORTY, folder=tmp_path) for _ in range(3)], Study(tmp_path / "s")
    by_pid = {process.pid: process for process in together}
    assert within(600, lambda: len(owning(study)) == 3 and len(list(study.folder.glob("cells/*/*/record.json"))) > 3)
    victim = by_pid[owning(study).popitem()[1]]
    assert within(600, lambda: victim.pid in owning(study).values())
    victim.send_signal(signal.SIGKILL)
    said = [ended(process) for process in together]
    assert sorted(code for code, _ in said) == [-9, 0, 0], said
    assert len(study.records()) == 40 and weights(study) == undisturbed
    assert len(set(pids(study).values())) == 40
    assert len(set_aside(study)) <= 1 and at_work(study.folder) == []


def owning(study: Study) -> dict[Path, int]:
    """Which process does which trial at this moment."""
    owners = {path: study.owner_of(path) for path in at_work(study.folder)}
    return {path: owner.pid for path, owner in owners.items() if owner}


@pytest.fixture(scope="module")
def whole(module_folder: Path) -> Path:
    """A complete study of two cells and two rounds."""
    code, said = done(*SMALL, folder=module_folder)
    assert code == 0, said
    return module_folder / "small"


SMALL = ["cudnn=default,benchmark", *PLAIN, "trials=2", "study=small"]


@pytest.mark.parametrize("silent_s", [0, HEARTBEAT_TIMEOUT_S + 5])
def test_a_trial_of_another_machine_is_taken_over_when_that_is_silent_only(
    silent_s: float, whole: Path, tmp_path: Path
) -> None:
    study = Study(Path(shutil.copytree(whole, tmp_path / "small")))
    folder = next(path for path in trials(study) if path.name == "trial-001")
    record_file(folder).unlink()
    elsewhere = replace(Owner.here(), machine="another", host="elsewhere", name="e" * 16)
    elsewhere.write(study.owner_file(elsewhere.name))
    claim = claim_of(folder)
    assert claim is not None
    (folder / "claim.json").write_text((folder / "claim.json").read_text().replace(claim.owner, elsewhere.name))
    assert Claim(f"{elsewhere.name}-1", elsewhere.name).take(study.round_folder(1))
    os.utime(study.owner_file(elsewhere.name), (time.time() - silent_s,) * 2)
    code, said = done(*SMALL, folder=tmp_path)
    assert code == 0, said
    if silent_s:
        assert len(pids(study)) == 4 and len(set_aside(study)) == 1
        assert not study.owner_file(elsewhere.name).exists()
    else:
        assert f"at work: {elsewhere}" in said and ", 1 missing" in said
        assert len(pids(study)) == 3 and set_aside(study) == [] and not record_file(folder).exists()
        assert study.round_folder(1).exists() and study.owner_file(elsewhere.name).exists()


def test_a_failure_counts_although_others_are_at_work(whole: Path, tmp_path: Path) -> None:
    study = Study(Path(shutil.copytree(whole, tmp_path / "small")))
    elsewhere = replace(Owner.here(), machine="another", name="e" * 16)
    elsewhere.write(study.owner_file(elsewhere.name))
    path = record_file(trials(study)[0])
    path.write_text(path.read_text().replace('"outcome": "finished"', '"outcome": "failed"'))
    code, said = done(*SMALL, "retry=none", folder=tmp_path)
    assert code == 1 and "1 of 4 trials failed" in said, said


def test_a_launchers_workers_are_nobody_else(tmp_path: Path) -> None:
    model = ["model._target_=planted.Fails", "+model.args.how=raise", "+model.args.step=3"]
    words = ["cudnn=default,benchmark", *PLAIN[:-1], *model, "trials=1", "hydra/launcher=joblib", "study=s"]
    code, said = done(*words, folder=tmp_path)
    assert code == 1 and "2 of 2 trials failed" in said, said
    assert "at work" not in said


def test_studies_that_begin_in_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    together = [start(*PLAIN, "trials=1", folder=tmp_path) for _ in range(6)]
    assert [ended(process)[0] for process in together] == [0] * 6
    folders = list((tmp_path / "studies").iterdir())
    assert len(folders) == 6
    assert [len(Study(folder).records()) for folder in folders] == [1] * 6


@contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    """A mount, taken away at the end; skips where this machine does not permit any."""
    made = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no mount here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", arguments[-1]], check=True)


def refused(said: str) -> bool:
    """Whether one message names a folder that cannot be written, and nothing else was said."""
    return bool(re.fullmatch(r"error: study=\S+: cannot be written \(.*\); name a folder of yours\n", said))


@pytest.mark.parametrize("there", [False, True])
def test_a_read_only_folder_is_refused_before_any_trial(there: bool, whole: Path, tmp_path: Path) -> None:
    if there:
        shutil.copytree(whole, tmp_path / "small")
    else:
        (tmp_path / "small").mkdir()
    before = sorted((tmp_path / "small").rglob("*"))
    with bound(tmp_path / "small"):
        code, said = done(*SMALL, "retry=none", folder=tmp_path)
    assert code == 2 and refused(said), said
    assert sorted((tmp_path / "small").rglob("*")) == before


@contextmanager
def bound(folder: Path) -> Iterator[None]:
    """Have a folder read-only, also for root."""
    with mounted("--bind", str(folder), str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield


def without_privilege() -> None:
    """Have root be bound to the permissions of files, as everybody else is."""
    if os.getuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_another_users_folder_is_refused_before_any_trial(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "small")
    before = sorted((tmp_path / "small").rglob("*"))
    for path in [tmp_path / "small", *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
    code, said = ended(start(*SMALL, folder=tmp_path, before=without_privilege))
    assert code == 2 and refused(said), said
    assert sorted((tmp_path / "small").rglob("*")) == before
