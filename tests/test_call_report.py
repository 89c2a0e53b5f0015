"""Calls in a summary, a report and on the settings' side: from records to words."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from composed import settings
from factory import Plant, make_cell, make_record
from many_calls import SETTINGS, make_calls, make_results

from runner.calls import ShapeCalls
from runner.cell import Cell
from runner.errors import ConfigError, StudyError
from runner.layout import record_file
from runner.record import Record
from runner.report import write_report
from runner.report.chain import chain
from runner.settings import cell_config
from runner.study import Study
from runner.trial import Trial


def calls_study(folder: Path, *found: Any) -> Study:
    """A study of default (F,F) with a trial for each of these."""
    cell = make_cell("default", **SETTINGS)
    study = Study.ask(folder, {"rounds": len(found), "version": "0.1.0"}, [cell])
    for number, calls in enumerate(found):
        claimed = study.claim(Trial.of(cell, number, 0, "cuda:0"), "me")
        assert claimed
        make_record(cell, number, calls=calls).write(record_file(claimed))
    return study


def section(study: Study) -> str:
    return study.report_markdown.read_text().partition("## Calls")[2].partition("\n## ")[0]


def test_a_record_of_calls_is_read_as_written(tmp_path: Path) -> None:
    record = make_record(make_cell(), calls=make_calls(gradients=make_results(distinct=3), backward=True))
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda calls: calls.pop("times"), "calls lacks times"),
        (lambda calls: calls["cold"].update(host_s="long"), "calls.cold.host_s holds 'long'"),
        (lambda calls: calls["shapes"][0].pop("first_ms"), "calls.shapes.0 lacks first_ms"),
        (lambda calls: calls.update(shapes=3), "calls.shapes is missing"),
        (lambda calls: calls["outputs"].update(distinct=-1), "calls.outputs.distinct holds -1"),
    ],
)
def test_damaged_calls_are_named(damage: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell(), calls=make_calls()).write(path)
    fields = json.loads(path.read_text())
    damage(fields["calls"])
    path.write_text(json.dumps(fields))
    with pytest.raises(StudyError, match=said):
        Record.read(path)


def test_the_report_has_a_table_of_calls(tmp_path: Path) -> None:
    off = make_results(distinct=7, max_ulp=3, max_relative=2e-7, relative=1.2e-7)
    study = calls_study(tmp_path / "s", make_calls(1.0), make_calls(1.4, gradients=off, outputs=make_results()))
    summary = write_report(study)
    found = section(study)
    for words in (
        "1.20 (sd 0.28)",
        "outputs 1 of 100",
        "gradients up to 7 of 100 (in 1 of 1 trials)",
        "3 ulp, 1.2e-07",
    ):
        assert words in found
    assert summary["cells"][0]["calls"]["cold"]["host_s"]["mean"] == pytest.approx(1.2)
    assert "call ms" in study.report_markdown.read_text()
    first = study.report_markdown.read_bytes()
    write_report(Study.open(study.folder))
    assert study.report_markdown.read_bytes() == first


def test_several_shapes_have_a_line(tmp_path: Path) -> None:
    shapes = [ShapeCalls("1x3x200x200", 500.0, 0.02, 0.3), ShapeCalls("1x3x300x300", 400.0, 0.02, 0.6)]
    study = calls_study(tmp_path / "s", make_calls(shapes=shapes, no_error="the module draws random numbers"))
    write_report(study)
    assert "1x3x200x200 first 500 ms, then 0.300 ms; 1x3x300x300 first 400 ms, then 0.600 ms" in section(study)
    assert "not compared with float64: the module draws random numbers" in section(study)


def test_a_study_without_calls_has_no_such_section(tmp_path: Path) -> None:
    cell = make_cell("default")
    study = Study.ask(tmp_path / "s", {"rounds": 1, "version": "0.1.0"}, [cell])
    claimed = study.claim(Trial.of(cell, 0, 0, "cuda:0"), "me")
    assert claimed
    make_record(cell).write(record_file(claimed))
    assert "calls" not in write_report(study)["cells"][0]
    assert "## Calls" not in study.report_markdown.read_text()


def test_where_calls_differ_between_processes_no_probe_is_advised(tmp_path: Path) -> None:
    cell = make_cell("default", **SETTINGS)
    study = Study.ask(tmp_path / "s", {"rounds": 2, "version": "0.1.0"}, [cell])
    for number in range(2):
        claimed = study.claim(Trial.of(cell, number, 0, "cuda:0"), "me")
        assert claimed
        make_record(cell, number, Plant(weights_step=1), calls=make_calls()).write(record_file(claimed))
    summary = write_report(study)
    assert "results differ after step 1" in summary["cells"][0]["reproducibility"]["sentence"]
    assert "losses" not in summary["cells"][0]["reproducibility"]["sentence"]
    lines = "\n".join(chain(summary, ["runner", "phase=calls"], "s"))
    assert "probes see no calls" in lines
    assert "probe=" not in lines and "losses" not in lines and "evaluation" not in lines


BARE = ["model=convolution", "model.head=false", "dataset=synthetic"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["phase=calls", "probe=ops"], "probe=ops: is not for phase=calls: calls.kernels=true"),
        (["phase=calls", "train.compile=default"], "train.compile=default: is not for phase=calls"),
        (["phase=calls", "calls.times=0"], "calls.times=0: must be at least 1"),
        (["phase=calls", "dataset=synthetic", "dataset.sizes=[8,9,10]", "calls.times=2"], "calls.times=2: at least 3"),
        (["phase=calls", "repeat_in_process=2"], "repeat_in_process=2: must be 1 with phase=calls"),
        (BARE, "model.head=False: phase=train needs one; take phase=calls"),
        ([*BARE, "phase=infer"], "model.head=False: phase=infer needs one"),
        (["model=layer", "model.head=false", "dataset=synthetic"], "model.head=False"),
        (["phase=call"], "phase=call: choose one of train, infer, calls"),
    ],
)
def test_what_calls_cannot_be_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(*words)
    assert said in str(refused.value)


def test_no_other_phase_depends_on_what_a_call_is() -> None:
    plain, other = (Cell(cell_config(settings(*words))) for words in ([], ["calls.times=7", "calls.backward=true"]))
    assert plain == other
    one, two = (Cell(cell_config(settings(*BARE, "phase=calls", f"calls.times={times}"))) for times in (7, 8))
    assert one.id != two.id


def test_a_record_of_an_older_study_has_none(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    record = replace(make_record(make_cell()), calls=None)
    record.write(path)
    fields = json.loads(path.read_text())
    del fields["calls"]
    path.write_text(json.dumps(fields))
    assert asdict(Record.read(path)) == asdict(record)
