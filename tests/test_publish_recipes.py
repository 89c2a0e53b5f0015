"""A recipe's page: what was published beside what was measured comes first, and no folder of one machine is in it."""

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from factory import Plant, make_cell, make_study
from recipes import make_replication, make_row

from runner.jsonfile import write_json
from runner.study import Study

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def publishing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("publish_recipes", SCRIPTS / "publish_recipes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("publish_results", None)
    return module


def followed(folder: Path, root: str = "/home/someone/cifar10") -> Study:
    """A study of a recipe on a folder of pictures."""
    data = {"name": "image_folder", "root": root}
    cells = [make_cell(mode, dataset=data) for mode in ("default", "deterministic")]
    study = make_study(folder / "study", [(cell, Plant()) for cell in cells])
    asked: dict[str, Any] = {
        "command": ["python", "-m", "runner", "dataset=image_folder", f"dataset.root={root}"],
        "recipe": asdict(make_replication(make_row())),
        "started": "today",
    }
    write_json(study.folder / "study.json", study.asked() | asked)
    return study


def test_the_published_figures_come_first_and_stand_there_once(tmp_path: Path, publishing: ModuleType) -> None:
    (page,) = publishing.publish([followed(tmp_path).folder], tmp_path / "pages", "half of [it]")
    lines = page.read_text().splitlines()
    heads = [line for line in lines if line.startswith("#")]
    assert heads[:3] == ["# A planted claim", "## Published beside measured", "## Measured"]
    assert sum("Published beside measured" in line for line in heads) == 1
    assert lines[2] == "Its data: half of [it]."
    begin, end = lines.index(heads[1]), lines.index(heads[2])
    assert any(line.startswith("| step time ratio | cudnn=deterministic") for line in lines[begin:end])
    assert any("source: Planted et al. 2020" in line for line in lines[begin:end])
    assert "#### Repeatability" in heads
    assert not (tmp_path / "pages" / "post.md").exists()  # none of its statements was measured


@pytest.mark.parametrize("root", ["/home/someone/cifar10", "/home/jos\u00e9/cifar10"])
def test_a_folder_of_one_machine_is_named_as_the_documentation_names_it(
    root: str, tmp_path: Path, publishing: ModuleType
) -> None:
    (page,) = publishing.publish([followed(tmp_path, root).folder], tmp_path / "pages")
    assert "dataset.root=data/cifar10" in page.read_text().partition("Started today")[2].split("###")[0]
    for path in (page, tmp_path / "pages" / "planted.json"):
        assert "/home" not in path.read_text()
        assert "data/cifar10" in path.read_text()
    assert "Its data" not in page.read_text()


def test_only_the_folder_itself_is_renamed(publishing: ModuleType) -> None:
    text = "root=/data, /data/train, x/data, /database, /other/data"
    assert publishing._moved(text, {"/data"}) == "root=data/data, data/data/train, x/data, /database, /other/data"
