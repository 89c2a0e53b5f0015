"""The doctor: what flips a flag, seeds late or draws alike is named by file and line."""

from pathlib import Path

from attachments import PYTHON, SCRIPTS, attach, script

MODE = {"deterministic": True, "benchmark": False, "enabled": True, "benchmark_limit": 10}


def line_of(name: str, words: str) -> str:
    """Where these words stand: "helpers/fast.py:8"."""
    lines = (SCRIPTS / name).read_text().splitlines()
    return f"{name}:{1 + next(number for number, line in enumerate(lines) if words in line)}"


def test_everything_is_named_once_by_file_and_line_and_the_mode_is_held(tmp_path: Path) -> None:
    record = attach([PYTHON, "troubled.py"], tmp_path, steps=22, cudnn=MODE)  # the second epoch's workers as well
    assert record.outcome == "finished", record.reason
    weights, dataset = line_of("troubled.py", "model = nn"), line_of("troubled.py", "class Noisy")
    alike = "in several workers of a DataLoader, so that they draw the same numbers"
    assert sorted(record.doctor) == sorted(
        [
            f"{line_of('troubled.py', 'os.environ')} sets CUDA_LAUNCH_BLOCKING=1",
            f"{line_of('helpers/fast.py', 'benchmark')} sets torch.backends.cudnn.benchmark = True; "
            "held as the cell has it",
            f"{line_of('helpers/fast.py', 'matmul')} calls torch.set_float32_matmul_precision('high')",
            f"{line_of('troubled.py', 'manual_seed')} seeds PyTorch late: the first weights were drawn before, "
            f"at {weights}",
            f"{line_of('troubled.py', 'use_determ')} calls torch.use_deterministic_algorithms(True): "
            "cuDNN is deterministic then in every mode",
            f"{line_of('troubled.py', 'cudnn.flags')} sets deterministic = False within "
            "torch.backends.cudnn.flags(); held as the cell has it",
            f"{line_of('troubled.py', 'cudnn.flags')} sets enabled = False within torch.backends.cudnn.flags()",
            f"{line_of('troubled.py', 'def same_for_all')} worker_init_fn seeds NumPy alike {alike}",
            f"{dataset} Noisy.dice starts from the same state {alike}",
        ]
    )
    for moment in ("before", "after"):
        assert (record.flags[moment]["deterministic"], record.flags[moment]["benchmark"]) == (True, False)
    assert record.flags["after"]["algorithms"] is True


def test_without_holding_the_script_has_its_will_and_its_missing_seed_is_named(tmp_path: Path) -> None:
    text = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.backends.cudnn.deterministic = False
while True:
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""
    command = script(tmp_path, text)
    record = attach(command, tmp_path / "trials", home=tmp_path, steps=2, hold=False, cudnn=MODE)
    assert record.doctor == [
        "train.py:5 sets torch.backends.cudnn.deterministic = False",
        "train.py:3 draws the first weights, and torch.manual_seed() was never called: each process starts elsewhere",
    ]
    assert record.flags["requested"]["deterministic"] is True
    assert record.flags["after"]["deterministic"] is False


def test_strict_algorithms_that_the_cell_asks_for_are_held(tmp_path: Path) -> None:
    text = """
import torch
torch.manual_seed(0)
torch.use_deterministic_algorithms(False)
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], 0.1)
while True:
    print("strict", torch.are_deterministic_algorithms_enabled())
    (weight * 2).sum().backward()
    optimizer.step()
"""
    full = {"algorithms": True, "warn_only": True, "fill_memory": True, "workspace": ":4096:8"}
    record = attach(script(tmp_path, text), tmp_path / "trials", home=tmp_path, steps=2, determinism=full)
    assert record.doctor == ["train.py:4 calls torch.use_deterministic_algorithms(False); held as the cell has it"]
    assert record.flags["after"]["algorithms"] is True and record.environment["workspace"] == ":4096:8"
