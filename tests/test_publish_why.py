"""The page of measured causes: made from figures alone, and the files that show a mismatch, started alone."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def finding(module: str, repeats: str | None, relative: float | None, name: str = "aten.mm.default") -> dict[str, Any]:
    return {"name": name, "module": module, "repeats": repeats, "max_relative": relative}


def test_the_page_follows_from_the_figures_that_are_kept() -> None:
    publishing = script("publish_why")
    assert publishing.page(publishing.RESULTS) == publishing.PAGE.read_text(encoding="utf-8")


def test_an_operation_is_one_row_with_its_places_and_the_largest_difference() -> None:
    again, between = "differs when repeated", "differs between processes"
    rows = list(
        script("publish_why")._by_name(
            [
                finding("a", again, 0.01),
                finding("b", again, 0.5),
                finding("b", between, None),
                finding("c", None, None, "aten.sum.default"),
            ]
        )
    )
    assert rows == [
        ("aten.mm", "2", f"{again} (2); {between} (1)", "0.5"),
        ("aten.sum", "1", "differs between trials", "not known"),
    ]


@pytest.mark.parametrize("status", [0, 1])
def test_a_repro_file_is_started_alone_and_its_status_and_words_are_kept(status: int, tmp_path: Path) -> None:
    text = f"import sys\nprint('runner' in sys.modules, 'seen on equal inputs: 2')\nsys.exit({status})\n"
    (tmp_path / "one.py").write_text(text)
    found = script("run_repros").started({"file": "one.py"}, tmp_path)
    assert found == {"file": "one.py", "status": status, "printed": ["False seen on equal inputs: 2"]}
    assert script("publish_why")._shown(found) == "False seen on equal inputs: 2"


def test_what_repro_files_showed_takes_the_place_of_their_own_study_alone(tmp_path: Path) -> None:
    def one(study: str, status: int) -> dict[str, object]:
        return {"study": study, "cell": "default (F,F)", "operation": "aten.mm", "status": status}

    keep = script("publish_why").keep_repros
    keep(tmp_path / "repros.json", [one("b-ops", 0), one("a-ops", 0)])
    keep(tmp_path / "repros.json", [one("b-ops", 1)])
    assert json.loads((tmp_path / "repros.json").read_text()) == {"files": [one("a-ops", 0), one("b-ops", 1)]}
