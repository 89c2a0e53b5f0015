"""The plot against a swept number: which number, what is drawn of it, and the published figure beside it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, make_cell, make_study
from recipes import make_replication, make_row

from runner.analysis.summary import summarise
from runner.jsonfile import write_json
from runner.report import canvas
from runner.report.canvas import COLOURS, Frame, png, usual_style
from runner.report.plots import draw
from runner.report.swept import published_ratios, swept, swept_key
from runner.study import Study

RATIOS = {1: 1.1, 3: 1.5, 5: 2.5, 7: 4.0}


@pytest.fixture(scope="module")
def study(module_folder: Path) -> Study:
    """Deterministic trials that take longer the larger the kernel, in fp32 alone; benchmark ones always take 0.9."""
    plants = []
    for precision in ("fp32", "default"):
        for size, ratio in RATIOS.items():
            for mode, slower in (("default", 1.0), ("benchmark", 0.9), ("deterministic", ratio)):
                settings: dict[str, Any] = {
                    "model": {"name": "medium_cnn", "kernel_size": size},
                    "precision": {"name": precision},
                }
                plants.append((make_cell(mode, **settings), Plant(ratio=slower if precision == "fp32" else 1.0)))
    made = make_study(module_folder / "study", plants, rounds=3)
    cell = {"cudnn": "deterministic", "precision": "fp32", "model.kernel_size": 7}
    rows = [make_row(cell=cell, over=cell | {"cudnn": other}, value=7.46) for other in ("default", "benchmark")]
    write_json(made.folder / "study.json", made.asked() | {"recipe": asdict(make_replication(*rows))})
    return made


@pytest.fixture(scope="module")
def summary(study: Study) -> dict[str, Any]:
    return summarise(study)


def test_the_swept_number_is_found(summary: dict[str, Any]) -> None:
    assert swept_key(summary) == "model.kernel_size"
    two = {**summary, "cells": [cell for cell in summary["cells"] if cell["config"]["model"]["kernel_size"] < 5]}
    assert swept_key(two) is None and swept(two, [], Frame()) is None


def test_neither_seeds_nor_the_default_alone_are_drawn(summary: dict[str, Any]) -> None:
    seeds = [
        cell | {"config": cell["config"] | {"seeds": {"base": number}}} for number, cell in enumerate(summary["cells"])
    ]
    same = [cell | {"config": cell["config"] | {"model": {"name": "resnet"}}} for cell in seeds]
    assert swept_key({**summary, "cells": same}) is None
    default = [cell for cell in summary["cells"] if cell["label"].startswith("default")]
    assert swept({**summary, "cells": default}, [], Frame()) is None


def test_a_panel_a_precision_and_a_line_a_mode_with_what_was_measured(summary: dict[str, Any]) -> None:
    with usual_style():
        picture = swept(summary, [], Frame("where"))
    assert picture is not None and "model.kernel_size" in picture.title
    fp32, default = picture.figure.axes
    assert (fp32.get_title(loc="left"), default.get_title(loc="left")) == ("precision=fp32", "precision=default")
    lines = {line.get_color(): line for line in fp32.lines if len(line.get_xdata()) == 4}
    assert set(lines) == {COLOURS[mode] for mode in ("default", "benchmark", "deterministic")}
    drawn = lines[COLOURS["deterministic"]]
    assert list(drawn.get_xdata()) == list(RATIOS)
    assert list(drawn.get_ydata()) == pytest.approx(list(RATIOS.values()), rel=0.02)
    assert fp32.get_yscale() == "log" and default.get_yscale() == "linear"


def test_the_published_ratio_stands_beside_the_measured_one(summary: dict[str, Any]) -> None:
    with usual_style():
        picture = swept(summary, [], Frame("where"))
    assert picture is not None
    fp32, default = picture.figure.axes
    crosses = [[line for line in axes.lines if line.get_marker() == "x"] for axes in (fp32, default)]
    assert [len(found) for found in crosses] == [1, 0]
    assert (crosses[0][0].get_xdata()[0], crosses[0][0].get_ydata()[0]) == (7, 7.46)
    assert any("published: 7.46 at model.kernel_size=7" in " ".join(text.get_text().split()) for text in fp32.texts)


def test_published_ratios_are_those_beside_the_default(summary: dict[str, Any]) -> None:
    found = {cell["label"]: published_ratios(summary, cell) for cell in summary["cells"]}
    assert [label for label, ratios in found.items() if ratios] == [
        "deterministic (T,F), model.kernel_size=7, precision=fp32"
    ]
    assert published_ratios(summary | {"recipe": None}, summary["cells"][0]) == []


def test_equal_summaries_are_equal_bytes(summary: dict[str, Any]) -> None:
    drawn = []
    for _ in range(2):
        with usual_style():
            picture = swept(summary, [], Frame("where"))
            assert picture is not None
            drawn.append(png(picture.figure))
    assert drawn[0] == drawn[1]


@pytest.fixture
def feet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small print of every picture, in the order of drawing."""
    noted: list[str] = []
    whole = canvas._alone

    def alone(title: str, foot: str, heights: Sequence[float]) -> Any:
        noted.append(foot)
        return whole(title, foot, heights)

    monkeypatch.setattr(canvas, "_alone", alone)
    return noted


def test_only_the_plots_with_a_panel_a_setting_say_how_many_settings_are_drawn(
    study: Study, summary: dict[str, Any], tmp_path: Path, feet: list[str]
) -> None:
    names = [path.stem for path in draw(study, summary, tmp_path)]
    told = dict(zip(names, ("6 of 8 settings are drawn." in foot for foot in feet), strict=True))
    assert told == {name: name != "swept" for name in names} and "swept" in told


def test_panels_of_a_swept_number_that_are_not_drawn_are_counted(
    summary: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with usual_style():
        both = swept(summary, [], Frame("where"))
        monkeypatch.setattr("runner.report.swept.MOST_PANELS", 1)
        one = swept(summary, [], Frame("where"))
    assert both is not None and one is not None
    assert "panels are drawn" not in both.told and len(both.figure.axes) == 2
    assert "1 of 2 panels are drawn." in one.told and len(one.figure.axes) == 1


def test_environments_that_read_the_same_stand_once_in_the_small_print(
    study: Study, summary: dict[str, Any], tmp_path: Path, feet: list[str]
) -> None:
    one = summary["environments"][0]
    draw(study, {**summary, "environments": [one, one | {"conv_precision": "tf32"}]}, tmp_path)
    assert feet and not any(" | " in foot for foot in feet)
