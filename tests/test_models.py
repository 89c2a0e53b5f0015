"""The shipped models on the data that ships: they learn, repeat on a CPU, and vary only with the seeds that vary."""

import json
from pathlib import Path

import pytest
from conftest import finals, study

from runner.study import Study

TRIALS = 3


@pytest.fixture(scope="module")
def done(module_folder: Path) -> Study:
    """Every model on the digits, with fixed seeds and with other initial weights in each trial."""
    words = ["model=resnet,unet,lstm", "seeds=fixed,init", f"trials={TRIALS}", "train.epochs=1", "threads=2"]
    return study(*words, "device=cpu", folder=module_folder)


def test_fixed_seeds_repeat_bitwise_and_init_seeds_never(done: Study) -> None:
    for cell in done.cells():
        records = [record for record in done.records() if record.cell == cell.id]
        assert len(records) == TRIALS
        assert len(finals(records)) == (TRIALS if cell.config["seeds"]["vary"] else 1), cell.config["model"]


def test_all_models_learn(done: Study) -> None:
    cells = {cell.id: cell.config["model"]["name"] for cell in done.cells()}
    better_than_chance = {"resnet": ("accuracy", 0.5), "unet": ("pixel_accuracy", 0.7), "lstm": ("accuracy", 0.3)}
    for record in done.records():
        name, bound = better_than_chance[cells[record.cell]]
        assert record.metrics[name] > bound, cells[record.cell]  # type: ignore[operator]


def test_each_cell_is_named_by_what_varies(done: Study) -> None:
    labels = [cell["label"] for cell in json.loads(done.summary_json.read_text())["cells"]]
    assert len(set(labels)) == 6
    assert all("model=" in label and "seeds.vary=" in label for label in labels)
