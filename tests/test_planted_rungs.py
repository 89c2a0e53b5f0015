"""Faults above operations, and two in them, in real processes: the report and `runner.why` name the right rung."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import call, study

from runner.study import Study

DATA = ["dataset=custom", "dataset.view=image", "dataset.classes=10"]
PLAIN = "dataset._target_=planted.plain_data"
SHORT = ["train.steps=6", "train.batch_size=8", "threads=1", "trials=2", "probe=ops"]
# By the target that has the fault: rung, step, part, operation and module.
FAULTS: dict[str, tuple[str, int, str, str, str]] = {
    "planted_ops.noisy_linear": ("operation", 1, "forward", "aten.addmm.default", "net.5"),
    "planted_ops.noisy_gradient": ("operation", 2, "backward", "aten.convolution_backward.default", "net.0"),
    "planted_rungs.ClockSeed": ("random", 1, "forward", "aten.bernoulli_.float", "net.3"),
    "planted_rungs.ClockFactor": ("scalar", 1, "forward", "aten.mul.Tensor", ""),
    "planted_rungs.ChangedBehind": ("outside", 1, "forward", "aten.addmm.default", "net.3"),
    "planted_rungs.MadeOutside": ("outside", 1, "forward", "aten.add.Tensor", ""),
    "planted_rungs.OtherShape": ("path", 1, "forward", "aten.constant_pad_nd.default", ""),
    "planted_rungs.ReadsUninitialised": ("uninitialised", 1, "forward", "aten.add.Tensor", ""),
}
REPEATS = {
    "planted_ops.noisy_linear": "differs between processes",
    "planted_ops.noisy_gradient": "differs when repeated",
}
# By the target of the data: the first step at which they differ.
DATA_FAULTS = {
    "planted_rungs.other_order": 5,
    "planted_rungs.seeded_by_process": 1,
    "planted_rungs.augmented": 1,
    "planted_rungs.race": 2,
}
START = "planted_rungs.ClockStart"


class Told:
    """A finished study, with what it says about each of its cells."""

    def __init__(self, done: Study, folder: Path):
        self.cells = json.loads(done.summary_json.read_text())["cells"]
        self.report = done.report_markdown.read_text().replace("\\", "")  # which keeps Markdown's signs as they are
        said = call("runner.why", str(done.folder), folder=folder)
        assert said.returncode == 0, said.stdout + said.stderr
        self.why = said.stdout

    def cell(self, group: str, name: str) -> Any:
        """The cell of a planted thing."""
        return next(one for one in self.cells if one["config"][group]["_target_"] == name)

    def part(self, name: str) -> str:
        """What `runner.why` says of this cell."""
        (told,) = (part for part in self.why.split("\n\n") if f"{name}:" in part)
        return told


@pytest.fixture(scope="module")
def models(module_folder: Path) -> Told:
    """Every planted model, as cells of one study."""
    folder = module_folder / "models"
    folder.mkdir()
    swept = ["model=custom", f"model._target_={','.join([*FAULTS, START])}", *DATA, PLAIN]
    return Told(study(*swept, *SHORT, "probe.repeat=true", folder=folder), folder)


@pytest.fixture(scope="module")
def data(module_folder: Path) -> Told:
    """Every planted data set, as cells of one study, read by a worker process."""
    folder = module_folder / "data"
    folder.mkdir()
    swept = ["model=custom", "model._target_=planted.Plain", *DATA, f"dataset._target_={','.join(DATA_FAULTS)}"]
    return Told(study(*swept, *SHORT, "dataset.workers=1", folder=folder), folder)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_model_is_found_on_its_rung(name: str, models: Told) -> None:
    why = models.cell("model", name)["traces"]
    places = [(one["rung"], one["step"], one["part"], one["name"], one["module"]) for one in why["findings"]]
    assert places[:1] == [FAULTS[name]]
    assert set(places) == {FAULTS[name]}
    assert why["findings"][0]["repeats"] == REPEATS.get(name)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_said_with_operation_and_place(name: str, models: Told) -> None:
    (found, *_) = models.cell("model", name)["traces"]["findings"]
    assert found["words"] in models.why
    assert found["words"] in models.report
    assert found["line"].startswith("planted")


def test_another_start_is_found_as_such(models: Told) -> None:
    cell = models.cell("model", START)
    assert cell["traces"]["sentence"].startswith("different start")
    assert cell["traces"]["findings"] == []
    assert re.search(r"\n  start +initial weights differ, first read by .*net\.1", models.part(START))


@pytest.mark.parametrize("name", DATA_FAULTS)
def test_planted_data_are_found_as_data_with_the_step(name: str, data: Told) -> None:
    cell, step = data.cell("dataset", name), DATA_FAULTS[name]
    assert f"data differ first at step {step}" in cell["traces"]["sentence"]
    assert cell["traces"]["findings"] == []
    assert re.search(rf"\n  data +differ first at step {step}\n", data.part(name))


def test_a_seed_of_dropout_that_varies_by_design_is_told_as_this_seed(tmp_path: Path) -> None:
    words = ["model=custom", "model._target_=planted_rungs.Dropping", *DATA, PLAIN]
    told = Told(study(*words, *SHORT, "seeds=dropout", folder=tmp_path), tmp_path)
    ((found, *others),) = (cell["traces"]["findings"] for cell in told.cells)
    assert (found["rung"], found["name"], found["module"]) == ("random", "aten.bernoulli_.float", "net.3")
    assert not others
    assert "dropout" in told.why
