"""Studies with a probe: bits are judged as ever, and no figure of speed is given anywhere."""

from pathlib import Path
from typing import Any

import pytest
from factory import CPU, GPU, Plant, make_cell, make_record, make_series, make_study

from runner.analysis.contention import PROBED
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.mode import MODES
from runner.report import write_report
from runner.report.answer import answers
from runner.report.notes import notes
from runner.report.number import NONE
from runner.report.table import header, more_figures, rows
from runner.tracking.summary import cell_figures
from runner.tracking.trial import figures

PROBES = [{"name": name, "steps": 2, "repeat": False} for name in ("modules", "ops", "kernels")]
NOISY = Plant(loss_step=3, weights_step=3)


def summary_of(folder: Path, plants: dict[str, Plant], where: dict[str, Any] = GPU) -> dict[str, Any]:
    """The summary of a study of these modes with a probe."""
    cells = [(make_cell(mode, probe=PROBES[1]), plant) for mode, plant in plants.items()]
    return summarise(make_study(folder, cells, 5, lambda *_: where))


FOUR = dict.fromkeys(MODES.values(), NOISY)


@pytest.mark.parametrize("where", [GPU, CPU])
def test_no_figure_of_speed_or_memory_is_computed(where: dict[str, Any], tmp_path: Path) -> None:
    summary = summary_of(tmp_path, FOUR, where)
    for cell in summary["cells"]:
        speed = cell["speed"]
        kept = {name: value for name, value in speed.items() if value not in (None, [], False, 0)}
        assert kept.keys() == {"peak_memory_kind", "ratio_to_baseline"}
        assert (speed["ratio_to_baseline"]["value"], speed["ratio_to_baseline"]["why"]) == (None, PROBED)
        assert (cell["n"], cell["reproducibility"]["verdict"]) == (5, "differs")


def test_one_reason_a_cell_is_said_and_the_table_has_no_times(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, FOUR)
    said = [note for note in notes(summary) if PROBED in note]
    assert said == [
        f"{cell['label']}: {PROBED}: there are no figures of speed and memory with probe=ops"
        for cell in summary["cells"]
    ]
    columns = header(summary)
    for row in rows(summary):
        assert row[columns.index("step ms")] == row[columns.index("peak memory")] == NONE
        assert row[columns.index("step time / default's")] == f"{NONE} {PROBED}"
    assert more_figures(summary)[0] == ["mode", "loss"]
    report = write_report(make_study(tmp_path / "report", [(make_cell(probe=PROBES[1]), NOISY)]))
    assert report["cells"][0]["n"] == 5
    text = (tmp_path / "report" / "report.md").read_text()
    assert text.count(PROBED) == 3  # the answer, the ratio, the note
    assert "does not count" not in text
    assert "too few steps" not in text


def test_the_only_mode_that_repeats_is_named_without_its_time(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, FOUR | {"deterministic": Plant()})
    found = summary["recommendation"]
    asks = {"undecided": f"{PROBED}: ask again with probe=none"}
    assert (found["fastest"], found["balanced"]) == (asks, asks)
    assert found["reproducible"]["label"] == "deterministic (T,F)"
    assert found["reproducible"]["why"] == (
        f"bitwise, 5 of 5; the only mode here that repeats: its time is not known: {PROBED}"
    )
    assert any(line.startswith("reproducible: deterministic (T,F)") for line in answers(summary))


def test_several_that_repeat_are_all_named_and_none_is_a_reason_of_its_own(tmp_path: Path) -> None:
    two = FOUR | {"deterministic": Plant(), "deterministic_benchmark": Plant()}
    said = summary_of(tmp_path / "two", two)["recommendation"]["reproducible"]["undecided"]
    assert said == (
        "deterministic (T,F) (bitwise, 5 of 5), deterministic_benchmark (T,T) (bitwise, 5 of 5) repeat; "
        f"which takes least time is not known: {PROBED}, ask again with probe=none"
    )
    none = summary_of(tmp_path / "none", FOUR)["recommendation"]["reproducible"]
    assert none == {"undecided": "needs a mode bitwise equal in all of at least 5 trials: there is none here"}


def test_cells_without_a_probe_keep_their_figures_beside_cells_with_one(tmp_path: Path) -> None:
    cells = [(make_cell(mode, **more), Plant()) for mode in MODES.values() for more in ({}, {"probe": PROBES[0]})]
    found = {cell["label"]: cell["speed"] for cell in summarise(make_study(tmp_path, cells))["cells"]}
    assert [name for name, speed in found.items() if speed["step_ms"]] == [name for name in found if "=" not in name]
    assert len(found) == 8


def test_mlflow_gets_no_figure_of_speed_either(tmp_path: Path) -> None:
    record, series = make_record(make_cell()), make_series()
    points, _ = figures(record, series, timed=False)
    assert {name for name, _ in points} == {"test/accuracy", "test/loss", "train/loss"}
    assert {"step_ms", "train/step_ms", "peak_allocated_bytes"} <= {name for name, _ in figures(record, series)[0]}
    for cell in summary_of(tmp_path, FOUR)["cells"]:
        assert not [name for name in cell_figures(cell) if "_ms" in name or "bytes" in name]


def test_a_study_of_before_there_were_probes_has_none() -> None:
    assert Cell({"cudnn": {}}).probe == "none"
    assert make_cell(probe=PROBES[2]).probe == "kernels"
