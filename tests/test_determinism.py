"""Every key beyond the two flags is an arm of its own: it sweeps, reaches the child, and shows in the label."""

from pathlib import Path

import pytest
from composed import planted_cell
from one_trial import one_trial
from test_expand import expanded

from runner.cell import labels

ARMS = {
    "determinism=flags,full": ["determinism.algorithms=false", "determinism.algorithms=true"],
    "determinism.algorithms=false,true": ["determinism.algorithms=false", "determinism.algorithms=true"],
    "determinism.warn_only=false,true": ["determinism.warn_only=false", "determinism.warn_only=true"],
    "determinism.fill_memory=true,false": ["determinism.fill_memory=true", "determinism.fill_memory=false"],
    "determinism.workspace=null,:16:8": ["determinism.workspace=null", "determinism.workspace=:16:8"],
    "determinism.workspace=':16:8',':4096:8'": ["determinism.workspace=:16:8", "determinism.workspace=:4096:8"],
    "cudnn.enabled=true,false": ["cudnn.enabled=true", "cudnn.enabled=false"],
    "cudnn.benchmark_limit=10,0": ["cudnn.benchmark_limit=10", "cudnn.benchmark_limit=0"],
}


@pytest.mark.parametrize("word", ARMS)
@pytest.mark.parametrize("modes", [1, 4])
def test_each_key_sweeps_alone_and_shows_in_the_label(word: str, modes: int) -> None:
    cells = expanded(word, *(["cudnn=glob(*)"] if modes == 4 else []))
    assert len(cells) == 2 * modes
    names = list(labels([one.cell for one in cells]).values())
    for arm in ARMS[word]:
        assert sum(arm in name for name in names) == modes


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("determinism.workspace=:16:8", "workspace", ":16:8"),
        ("++determinism.workspace=:4096:8", "workspace", ":4096:8"),
        ("determinism.algorithms=true", "algorithms", True),
        ("determinism.fill_memory=false", "fill_memory", False),
        ("cudnn.enabled=false", "enabled", False),
        ("cudnn.benchmark_limit=0", "benchmark_limit", 0),
    ],
)
def test_each_key_alone_is_read_back_in_the_child(word: str, key: str, value: object, tmp_path: Path) -> None:
    record, folder = one_trial(planted_cell("Plain", word), tmp_path)
    assert record.outcome == "finished", (folder / "log.txt").read_text()
    for moment in ("requested", "before", "after"):
        assert record.flags[moment][key] == value
    others = ("algorithms", "fill_memory", "enabled", "benchmark_limit")
    usual = {"algorithms": False, "fill_memory": True, "enabled": True, "benchmark_limit": 10}
    assert {name: record.flags["after"][name] for name in others} == usual | ({key: value} if key in usual else {})
    assert record.environment["workspace"] == record.flags["after"]["workspace"]
