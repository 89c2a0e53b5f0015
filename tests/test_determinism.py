"""Every key beyond the two flags is an arm of its own: it sweeps, reaches the child, and shows in the label."""

from pathlib import Path
from typing import Any

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
def test_each_key_sweeps_alone_and_shows_in_the_label(word: str) -> None:
    cells = expanded(word, "cudnn=glob(*)")
    assert len(cells) == 2 * 4
    names = list(labels([one.cell for one in cells]).values())
    for arm in ARMS[word]:
        assert sum(arm in name for name in names) == 4


USUAL = {"algorithms": False, "fill_memory": True, "enabled": True, "benchmark_limit": 10, "workspace": ":4096:8"}
OTHER = {"algorithms": True, "fill_memory": False, "enabled": False, "benchmark_limit": 0, "workspace": ":16:8"}


@pytest.mark.parametrize("values", [USUAL, OTHER], ids=["usual", "other"])
def test_each_key_is_read_back_in_the_child(values: dict[str, Any], tmp_path: Path) -> None:
    group = {"enabled": "cudnn", "benchmark_limit": "cudnn"}
    words = [f"++{group.get(key, 'determinism')}.{key}={str(value).lower()}" for key, value in values.items()]
    record, folder = one_trial(planted_cell("Plain", *words), tmp_path)
    assert record.outcome == "finished", (folder / "log.txt").read_text()
    for moment in ("requested", "before", "after"):
        assert {key: record.flags[moment][key] for key in values} == values
    assert record.environment["workspace"] == values["workspace"]
