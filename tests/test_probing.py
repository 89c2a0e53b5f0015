"""Where a probe looks into a trial: around each step and the update in it, and what it leaves whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from composed import planted_cell, planted_config
from planted import Plain
from test_train import batches
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from runner.cell import Cell
from runner.layout import kernels_file, record_file, trace_file, trial_file
from runner.record import Record
from runner.trial import Trial
from runner.worker import main
from runner.worker.clock import Clock
from runner.worker.contract import Task
from runner.worker.infer import answer
from runner.worker.train import train_model


class Notes(nn.Module):
    """A model and a probe in one: it notes what happens, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.seen = Plain(), []  # type: ignore[var-annotated]
        next(self.net.parameters()).register_hook(lambda gradient: self.seen.append("backward"))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(B, 1, 8, 8) -> (B, 10)."""
        self.seen.append("forward")
        return self.net(inputs)  # type: ignore[no-any-return]

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Around a step."""
        self.seen.append(f"step {number}")
        yield
        self.seen.append("end")

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Around the update."""
        self.seen.append("optimizing")
        yield
        self.seen.append("optimized")

    def write(self, folder: Path) -> None:
        """Nothing to leave."""


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_probe_of_training_is_around_each_step_and_the_update_in_it(precision: str) -> None:
    notes, config = Notes(), planted_config("Plain", f"precision={precision}")
    handle = register_optimizer_step_post_hook(lambda *_: notes.seen.append("update"))
    try:
        train_model(notes, Task("image", 10), batches(), config, 2, Clock(None), lambda: None, notes)
    finally:
        handle.remove()
    one = ["forward", "backward", "optimizing", "update", "optimized", "end"]
    assert notes.seen == ["step 1", *one, "step 2", *one]


def test_a_probe_of_answers_is_around_the_model_alone() -> None:
    notes = Notes()
    answer(notes, Task("image", 10), batches(), planted_config("Plain", "phase=infer"), 2, Clock(None), notes)
    assert notes.seen == ["step 1", "forward", "end", "step 2", "forward", "end"]


class Leaves:
    """A probe that leaves a file, or cannot."""

    def __init__(self, fails: bool):
        self.fails = fails

    def write(self, folder: Path) -> None:
        """Leave a file, before there is a record."""
        assert not record_file(folder).exists()
        if self.fails:
            raise OSError(28, "No space left on device")
        (folder / "left").touch()


def outcome(monkeypatch: pytest.MonkeyPatch, folder: Path, probe: Leaves, error: Exception | None) -> Record:
    """The record of a trial in this process that ends with this error, or else does not train at all."""
    Trial.of(planted_cell("Plain"), 0, 0, "cpu").write(trial_file(folder))

    def session(_: Trial, seen: Any, reached: Path) -> None:
        seen.probe = probe
        raise error or ValueError("planted: no result")

    monkeypatch.setattr("runner.worker.session.session", session)
    main.run(str(folder))
    return Record.read(record_file(folder))


def test_what_there_is_of_a_trace_is_left_by_a_training_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = outcome(monkeypatch, tmp_path, Leaves(fails=False), RuntimeError("planted failure"))
    assert (tmp_path / "left").exists()
    assert record.reason == "RuntimeError: planted failure"


def test_a_trace_that_cannot_be_written_costs_no_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = outcome(monkeypatch, tmp_path, Leaves(fails=True), RuntimeError("planted failure"))
    assert (record.outcome, record.reason) == ("failed", "RuntimeError: planted failure")


@pytest.mark.parametrize("name", ["none", "modules", "ops", "kernels"])
def test_each_probe_leaves_its_own_file_and_changes_no_bit(name: str, plain: Record, tmp_path: Path) -> None:
    from one_trial import one_trial

    record, folder = one_trial(planted_cell("Plain", f"probe={name}"), tmp_path)
    assert record.outcome == "finished", (folder / "log.txt").read_text()
    assert record.digests == plain.digests
    left = [file(folder).exists() for file in (trace_file, kernels_file)]
    assert left == [name in ("modules", "ops"), name == "kernels"]


@pytest.fixture(scope="module")
def plain(module_folder: Path) -> Record:
    """A trial by settings of before there were probes."""
    from one_trial import one_trial

    config = planted_cell("Plain").config
    older = Cell({key: value for key, value in config.items() if key not in ("probe", "repeat_in_process")})
    record, folder = one_trial(older, module_folder)
    assert record.outcome == "finished", (folder / "log.txt").read_text()
    return record
