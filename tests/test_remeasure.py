"""Cells as config files: what they are composed to is the cell itself, whatever its settings hold."""

from pathlib import Path
from typing import Any

import pytest
from composed import composed, settings

from runner.remeasure import GROUP, unfit, write_cells
from runner.schema import load
from runner.settings import cell_config

CUSTOM = ["model=custom", "model._target_=mine.Net", "dataset=custom", "dataset._target_=mine.data"]
CELLS = [
    [],
    ["model=unet", "precision=bf16", "determinism=full", "cudnn=deterministic", "seeds=init"],
    ["model=lstm", "dataset=synthetic", "dataset.lengths=[10,20]", "probe=ops", "phase=infer"],
    ["model=torchvision", "dataset=mnist", "dataset.root='/a b/c'", "train.learning_rate=1e-05"],
    [*CUSTOM, "dataset.view=image", "dataset.classes=10", "+model.args.width=64", "+dataset.args.list=[1,null,x]"],
]


def again(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of the cell that a cell's file leads to."""
    (name,) = write_cells([config], folder / GROUP)
    return cell_config(load(composed(f"hydra.searchpath=[{folder}]", f"+{GROUP}={name}")))


@pytest.mark.parametrize("words", CELLS, ids=" ".join)
def test_a_cells_file_leads_to_the_cell(tmp_path: Path, words: list[str]) -> None:
    config = cell_config(settings(*words))
    assert again(config, tmp_path) == config
    assert unfit(config) == ""


@pytest.mark.parametrize(
    "text", ["ä \"quoted\" 'x'", "1e5", "null", "a\\b", "\U0001f600", "a: b #c", "${now:%Y} \\${x}"]
)
def test_text_of_a_users_own_stays_what_it_is(tmp_path: Path, text: str) -> None:
    config = cell_config(settings(*CUSTOM, "dataset.view=image", "dataset.classes=10"))
    config["model"]["args"] = {"text": text, "nested": {"more": [text, 1.5, None, True]}}
    assert again(config, tmp_path) == config


def test_several_cells_have_a_file_each(tmp_path: Path) -> None:
    configs = [cell_config(settings(f"threads={threads}")) for threads in (1, 2)]
    names = write_cells(configs, tmp_path / GROUP)
    assert sorted(path.stem for path in (tmp_path / GROUP).iterdir()) == sorted(names) and len(set(names)) == 2
