"""Failures, kills and sharing on a real GPU: memory comes back, and two trials on one card never meet."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from conftest import TESTS, call
from processes import within

from runner.study import Study

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
DATA = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
TINY = [*DATA, "model=custom", "train.steps=10", "train.batch_size=8", "tracking=off"]


@pytest.mark.parametrize(
    ("model", "reason"), [("TooLarge", "OutOfMemoryError: CUDA out of memory"), ("WrongIndex", "device-side assert")]
)
def test_a_mode_that_fails_on_the_device_fails_alone(model: str, reason: str, tmp_path: Path) -> None:
    words = ["cudnn=glob(*)", *TINY, f"model._target_=planted_gpu.{model}", "trials=2", "study=s"]
    done = call("runner", "-m", *words, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    study = Study.open(tmp_path / "s")
    benchmark = {cell.id: cell.config["cudnn"]["benchmark"] for cell in study.cells()}
    assert len(study.records()) == 8
    for record in study.records():
        assert record.outcome == ("failed" if benchmark[record.cell] else "finished")
        assert not benchmark[record.cell] or reason in (record.reason or "")


def memory_used() -> int:
    """Bytes in use on the first device, by whomever."""
    import pynvml

    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)


def start(*words: str, folder: Path) -> "subprocess.Popen[str]":
    """Start a study in the background."""
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "runner", "-m", *words]
    environ = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_study_gives_the_devices_memory_back_and_is_continued(number: signal.Signals, tmp_path: Path) -> None:
    before = memory_used()
    words = [*TINY, "model._target_=planted_gpu.Holds", "trials=2", "study=s"]
    process = start(*words, f"+model.args.path={tmp_path}/holds", folder=tmp_path)
    assert within(120, (tmp_path / "holds").exists)
    assert memory_used() > before + 2**30
    process.send_signal(number)
    assert within(15, lambda: memory_used() < before + 2**28)
    assert process.wait(60) in (130, 143, -9)
    if number != signal.SIGKILL:
        assert [record.outcome for record in Study.open(tmp_path / "s").records()] == ["interrupted"]


@pytest.fixture
def spans(tmp_path: Path) -> Callable[..., tuple[bool, list[str]]]:
    """Do two studies at once on one card; tells whether their steps lay between each other, and what was printed."""

    def together(*words: str) -> tuple[bool, list[str]]:
        studies = [
            start(*TINY, "model._target_=planted_gpu.NotesSpan", f"+model.args.path={tmp_path}/{name}", "trials=2",
                  f"study={name}-study", *words, folder=tmp_path)
            for name in "ab"
        ]  # fmt: skip
        printed = [study.communicate(timeout=300)[0] for study in studies]
        assert [study.returncode for study in studies] == [0, 0], printed
        moments = sorted((float(line), name) for name in "ab" for line in (tmp_path / name).read_text().split())
        changes = sum(one[1] != other[1] for one, other in pairwise(moments))
        return changes > 3, printed  # two trials each, one after another: three changes at most

    return together


def test_two_studies_on_one_card_take_turns_and_say_so(spans: Callable[..., tuple[bool, list[str]]]) -> None:
    mixed, printed = spans()
    assert not mixed
    assert any("waiting for NVIDIA" in text and ", held by process " in text for text in printed)


def test_who_opts_out_works_side_by_side_and_the_records_say_so(
    spans: Callable[..., tuple[bool, list[str]]], tmp_path: Path
) -> None:
    mixed, printed = spans("exclusive=false")
    assert mixed, printed
    records = [record for name in "ab" for record in Study.open(tmp_path / f"{name}-study").records()]
    assert {record.environment["exclusive"] for record in records} == {False}


def test_all_cards_of_a_machine_are_used_and_the_record_says_which(tmp_path: Path) -> None:
    words = ["cudnn=default,deterministic", *TINY, "model._target_=planted.Plain", "trials=4", "study=s", "device=all"]
    done = call("runner", "-m", *words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cards: dict[int, set[object]] = {}
    for record in Study.open(tmp_path / "s").records():
        cards.setdefault(record.number, set()).add(record.environment["gpu_uuid"])
    assert len(cards) == 4
    assert all(len(uuids) == 1 for uuids in cards.values())
    assert torch.cuda.device_count() == 1 or len(set.union(*cards.values())) > 1
