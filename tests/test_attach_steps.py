"""What counts as a step of an attached script, and what is seen of it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from attachments import attach, script, series_of

from runner.record import Record
from runner.worker.digest import digest

pytestmark = pytest.mark.slow  # each is a process of its own; tests/test_attach.py has the plain step

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""


def ended(folder: Path, text: str, **asked: object) -> Record:
    record = attach(script(folder, text), folder / "trials", home=folder, **asked)  # type: ignore[arg-type]
    assert record.outcome == "finished", record.reason
    return record


def test_accumulated_gradients_are_one_step_whose_loss_is_the_sum(tmp_path: Path) -> None:
    text = f"""{MODEL}
for step in range(100):
    for part in (1, 2, 3):
        (model(torch.full((2, 4), float(part))).mean() * 0 + part).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    record = ended(tmp_path, text, steps=9)
    assert record.speed is not None and record.speed.steps == 9 and record.speed.step_ms is not None
    series = series_of(tmp_path / "trials")
    assert series.loss.tolist() == [6.0] * 9
    assert len({tuple(row) for row in series.data.tolist()}) == 1


def test_the_digests_are_those_of_the_runner(tmp_path: Path) -> None:
    """A weight that grows by 1 in each step, on data that change in step 3, in an interpreter that has torch alone."""
    text = """
import sys
sys.modules |= dict.fromkeys(("numpy", "psutil", "pydantic", "runner"))
import torch
torch.manual_seed(0)
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), 1.0)
for step in range(100):
    optimizer.zero_grad()
    (-model(torch.ones(1, 1) if step != 2 else torch.ones(1, 1) * 1.0000001).sum()).backward()
    optimizer.step()
"""
    record = ended(tmp_path, text, steps=2)
    assert record.digests is not None
    assert record.digests.initial == digest([torch.zeros(1, 1)])
    assert record.digests.steps == {"1": digest([torch.ones(1, 1)]), "2": digest([torch.full((1, 1), 2.0)])}
    assert record.digests.final == record.digests.steps["2"]
    assert record.gradients == dict.fromkeys("12", digest([torch.full((1, 1), -1.0)]))
    (tmp_path / "again").mkdir()
    attach(script(tmp_path / "again", text), tmp_path / "again", home=tmp_path / "again", steps=4)
    data = series_of(tmp_path / "again").data
    assert (data[0] == data[1]).all() and (data[2] != data[1]).any() and (data[3] == data[0]).all()


def test_several_optimizers_are_one_round(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn
torch.manual_seed(0)
maker, judge = nn.Linear(2, 4), nn.Linear(4, 1)
of_judge, of_maker = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
for step in range(100):
    fake = maker(torch.randn(8, 2))
    of_judge.zero_grad()
    judge(torch.randn(8, 4)).mean().backward()
    (-judge(fake.detach()).mean()).backward()
    of_judge.step()
    of_maker.zero_grad()
    judge(fake).mean().backward()
    of_maker.step()
"""
    record = ended(tmp_path, text, steps=6)
    assert record.speed is not None and record.speed.steps == 6
    assert record.doctor == ["2 optimizers step: a step here is one round of all of them"]
    assert np.isfinite(series_of(tmp_path / "trials").loss).all()


@pytest.mark.slow
def test_a_first_optimizer_that_is_used_no_more_gives_way(tmp_path: Path) -> None:
    text = f"""{MODEL}
def step(optimizer):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
for _ in range(2):
    step(optimizer)
other = torch.optim.Adam(model.parameters())
for _ in range(100):
    step(other)
"""
    record = ended(tmp_path, text, steps=4)
    assert record.speed is not None and record.speed.steps == 4


def test_a_closure_and_no_backward_at_all(tmp_path: Path) -> None:
    text = f"""{MODEL}
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4)).square().sum()
    for one, gradient in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
        one.grad = gradient
    return loss
while True:
    optimizer.step(closure)
"""
    record = ended(tmp_path, text, steps=3)
    assert record.speed is not None and record.speed.steps == 3
    assert np.isnan(series_of(tmp_path / "trials").loss).all()
    assert record.doctor == ["no backward() of a single number was seen, so no losses are compared"]


def test_a_scaler_that_skips_counts_its_steps_and_tells_the_loss_unscaled(tmp_path: Path) -> None:
    text = f"""{MODEL}
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(100):
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4)).sum() * 0 + 5
    scaler.scale(loss).backward()
    if step in (1, 2):
        model.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
"""
    record = ended(tmp_path, text, steps=5)
    assert record.speed is not None and record.speed.steps == 5
    assert series_of(tmp_path / "trials").loss.tolist() == [5.0] * 5
    assert record.doctor == ["GradScaler skips some steps: they are counted and change nothing"]


def test_a_loss_that_is_infinite_is_a_divergence(tmp_path: Path) -> None:
    text = f"""{MODEL}
for step in range(9):
    (model(torch.ones(1, 4)).square().sum() / (3 - step)).backward()
    optimizer.step()
"""
    record = attach(script(tmp_path, text), tmp_path / "trials", home=tmp_path, steps=6)
    assert (record.outcome, record.reason) == ("diverged", "the loss is inf at step 4")


def test_workers_that_fork_and_step_are_told_apart(tmp_path: Path) -> None:
    """A forked process takes steps as well, and ends first; so does one that is started anew."""
    text = f"""{MODEL}
import os, subprocess, sys
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
if len(sys.argv) > 1:
    train(2)
    sys.exit()
train(1)
if os.fork() == 0:
    train(3)
    sys.exit()
os.wait()
subprocess.run([sys.executable, "train.py", "again"], check=True)
train(100)
"""
    record = ended(tmp_path, text, steps=7)
    assert record.speed is not None and record.speed.steps == 7
    assert record.doctor == []


@pytest.mark.slow
def test_the_first_rank_of_several_is_recorded(tmp_path: Path) -> None:
    text = """
import torch
import torch.distributed as distributed
from torch import nn
distributed.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(1000):
    optimizer.zero_grad()
    model(torch.full((3, 4), float(distributed.get_rank()))).sum().backward()
    optimizer.step()
"""
    (python, name) = script(tmp_path, text)
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", name]
    record = attach(command, tmp_path / "trials", home=tmp_path, steps=5)
    assert (record.outcome, record.process["status"]) == ("finished", 0), record.reason
    assert record.speed is not None and record.speed.steps == 5


def test_what_models_do_beside_plain_calls_is_no_data(tmp_path: Path) -> None:
    """Checkpointed activations are computed again in backward; per-sample gradients see no plain tensors."""
    text = f"""{MODEL}
from torch.utils.checkpoint import checkpoint
inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.model = inner, model
    def forward(self, x):
        return self.model(checkpoint(self.inner, x, use_reentrant=False))
whole = Whole()
class Once(torch.optim.SGD):
    failed = False
    def step(self, closure=None):
        if not Once.failed:
            Once.failed = True
            raise RuntimeError("out of memory, as it were")
        return super().step(closure)
optimizer = Once(whole.parameters(), 0.1)
def loss_of(parameters, x):
    return torch.func.functional_call(model, parameters, x).sum()
while True:
    optimizer.zero_grad()
    whole(torch.ones(3, 4)).sum().backward()
    torch.func.vmap(torch.func.grad(loss_of), (None, 0))(dict(model.named_parameters()), torch.ones(2, 4))
    try:
        optimizer.step()
    except RuntimeError:
        print("once more")
"""
    record = ended(tmp_path, text, steps=5)
    assert record.speed is not None and record.speed.steps == 5
    data = series_of(tmp_path / "trials").data
    assert (data[1:] == data[1]).all(), (
        data.tolist()
    )  # the first step has two batches: that of the step that failed as well


@pytest.mark.slow
def test_a_model_that_is_compiled_as_a_whole_stays_whole(tmp_path: Path) -> None:
    text = f"""{MODEL}
compiled = torch.compile(model, backend="eager", fullgraph=True)
for inputs in torch.utils.data.DataLoader(torch.arange(400.0).view(100, 4), batch_size=10):
    optimizer.zero_grad()
    compiled(inputs).sum().backward()
    optimizer.step()
"""
    record = ended(tmp_path, text, steps=5)
    assert record.speed is not None and record.speed.steps == 5
    assert len({tuple(row) for row in series_of(tmp_path / "trials").data.tolist()}) == 5


def test_a_step_that_is_compiled_is_seen(tmp_path: Path) -> None:
    text = f"""{MODEL}
step = torch.compile(lambda: optimizer.step(), backend="eager")
for _ in range(100):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    step()
"""
    record = ended(tmp_path, text, steps=5)
    assert record.speed is not None and record.speed.steps == 5
    plain = ended(tmp_path, text.replace("    step()", "    optimizer.step()"), steps=5, number=1)
    assert record.digests and plain.digests and record.digests.steps == plain.digests.steps
