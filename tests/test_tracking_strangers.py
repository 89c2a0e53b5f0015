"""Settings that nobody expects: they arrive, they are no markup, and they lead no file out of its place."""

import json
from pathlib import Path

import pytest
from factory import make_cell
from tracked import attempt, find, state, upload

from runner import tracking
from runner.study import Study
from runner.tracking.store import connect, open_experiment

STRANGE = [
    "<script>alert(1)</script>",
    'it\'s "both" quotes',
    "a\nb\r\n\tc",
    "x" * 1000,
    "\u4e2d" * 1000,
    "\x00\x07\x1b[31m\x7f\x9b",
    "\udcff no text",
    "../..",
    "/etc/../../passwd",
    "[here](javascript:alert(1)) ![x](x) `|` &lt;",
    "' or tags.study != '",
    "",
]


@pytest.mark.parametrize("text", STRANGE)
def test_a_strange_setting_arrives_and_is_found_again(uri: str, tmp_path: Path, text: str) -> None:
    custom = {"name": "custom", "_target_": text, "args": {text: text}}
    cells = [make_cell(), make_cell(note=text), make_cell(model=custom), make_cell(dataset={"name": text})]
    study = Study.ask(tmp_path / "study", {"rounds": 1}, cells)
    for cell in cells:
        attempt(study, cell, outcome="failed", reason=text)
    client = upload(uri, study).client
    before = state(client)
    upload(uri, study)
    assert state(client) == before
    assert len(find(client, "tags.level = 'trial'")) == len(cells)
    for run in find(client, "tags.level = 'study'"):
        assert "<script>" not in run.data.tags["mlflow.note.content"]
    runs = find(client, "tags.level LIKE '%'")
    assert all(len(run.info.run_name) <= 250 and run.info.run_name.isprintable() for run in runs)
    assert all(run.info.run_name.startswith("#0 ") == (run.data.tags["level"] == "trial") for run in runs)


def test_a_planted_setting_stands_escaped_on_the_page(uri: str, tmp_path: Path) -> None:
    planted = "<img src=x onerror=alert(1)> [x](javascript:y) | `z`"
    cells = [make_cell(note=planted), make_cell(note="plain")]
    study = Study.ask(tmp_path / "study", {"rounds": 1}, cells)
    for cell in cells:
        attempt(study, cell)
    (run,) = find(upload(uri, study).client, "tags.level = 'study'")
    note = run.data.tags["mlflow.note.content"]
    assert "&lt;img src=x onerror=alert(1)&gt; [x\\](javascript:y) \\| \\`z\\`" in note
    assert "<" not in note


@pytest.mark.parametrize("name", ['it\'s "both"', "a\nb", "<script>", "\x1b[31m", "n" * 240, "\udcff", "\u4e2d" * 80])
def test_a_study_of_a_strange_name_is_found_again(uri: str, tmp_path: Path, name: str) -> None:
    study = Study.ask(tmp_path / name, {"rounds": 1}, [make_cell()])
    attempt(study, make_cell())
    client = upload(uri, study).client
    before = state(client)
    upload(uri, study)
    assert state(client) == before
    tracking.open_study(uri, Study.ask(study.folder, {"rounds": 2}, [make_cell()]))
    tracking.end_leftovers(uri)
    (run,) = find(client, "tags.level = 'study'")
    # A folder whose name is no text cannot be found from its tag: such a study is left alone.
    assert run.info.status == ("KILLED" if name.isprintable() or name == "a\nb" else "RUNNING")


@pytest.mark.parametrize("name", [*filter(None, STRANGE), " ", ".", "..", "a/..", "C:\\x", "~"])
def test_a_strange_experiment_keeps_its_files_in_their_place(uri: str, tmp_path: Path, name: str) -> None:
    study = Study.ask(tmp_path / "study", {"rounds": 1}, [make_cell()])
    tracking.check(uri, study.cells(), name)
    assert tracking.open_study(uri, study, name).cells == tracking.open_study(uri, study, name).cells
    client = connect(uri)
    client.log_dict(find(client, "tags.level = 'cell'")[0].info.run_id, {"here": 1}, "planted.json")
    (written,) = tmp_path.rglob("planted.json")
    assert written.resolve().is_relative_to(tmp_path / "store" / "mlartifacts")
    assert json.loads(written.read_text()) == {"here": 1}


def test_experiments_of_different_names_stay_different(uri: str) -> None:
    client = connect(uri)
    names = [*STRANGE, "x" * 999, "a b"]
    assert len({open_experiment(client, tracking.store.title(name)) for name in names}) == len(names)
