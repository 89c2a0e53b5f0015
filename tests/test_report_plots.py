"""The plots of report.html alone: cost against variance, losses with the step at which they part, equal weights."""

import math
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import Plant, four_modes, make_cell, make_series, make_study

from runner.analysis.evidence import Evidence
from runner.analysis.summary import summarise
from runner.layout import record_file, series_file
from runner.report.canvas import BETWEEN, COLOURS, DARK, LIGHT, Frame, svg, usual_style
from runner.report.curves import samples_in
from runner.report.equality import equality
from runner.report.losses import losses
from runner.report.plots import page_plots
from runner.report.tradeoff import tradeoff
from runner.report.trainings import groups_of
from runner.study import Study


@pytest.fixture(autouse=True)
def without_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power goes here."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.fixture
def usual(tmp_path: Path) -> Study:
    """Default parts at step 3, benchmark at step 2; both deterministic modes repeat, and give the same weights."""
    return four_modes(tmp_path / "study")


def drawn(plot: Any, study: Study) -> Any:
    """The axes of a plot of trainings, None where there is none."""
    with usual_style():
        picture = plot(groups_of(study, summarise(study), samples_in(Evidence.of(study)), 4), Frame())
    return picture and picture.figure.axes


def marks(axes: Any, marker: str) -> list[tuple[str, float]]:
    """Colour and place on the x axis of every mark of a kind."""
    return [(line.get_color(), line.get_xdata()[0]) for line in axes.lines if line.get_marker() == marker]


def test_a_mode_is_a_point_of_its_cost_and_its_spread(usual: Study) -> None:
    summary = summarise(usual)
    with usual_style():
        picture = tradeoff(summary, 4, Frame())
    assert picture is not None
    (axes,) = picture.figure.axes
    assert axes.get_ylabel() == "disagreement of predictions (share)"  # accuracy is the same in all
    points = {line.get_color(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    for cell, colour in zip(summary["cells"], COLOURS.values(), strict=True):
        expected = cell["speed"]["step_ms"]["mean"], cell["reproducibility"]["disagreement"]
        assert points[colour] == expected
    assert points[COLOURS["deterministic"]][1] == 0 < points[COLOURS["default"]][1]
    bars = [tuple(map(tuple, bar.get_segments()[0])) for bar in axes.collections]
    low, high = summary["cells"][1]["reproducibility"]["disagreement_ci95"]
    mean = points[COLOURS["benchmark"]][0]
    assert ((mean, low), (mean, high)) in bars
    assert axes.get_ylim()[0] < 0 and axes.get_ylim()[1] > high


def test_where_a_metric_spreads_it_is_the_measure(tmp_path: Path) -> None:
    plant = Plant(metrics={number: {"accuracy": 0.9 + number / 100} for number in range(5)})
    study = make_study(tmp_path / "study", [(make_cell(), plant), (make_cell("benchmark"), Plant())])
    with usual_style():
        picture = tradeoff(summarise(study), 4, Frame())
    assert picture is not None and picture.figure.axes[0].get_ylabel() == "sd of accuracy"


def test_keys_of_modes_that_lie_together_are_not_over_each_other(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(mode), Plant(noise=1e-6)) for mode in COLOURS])
    with usual_style():
        picture = tradeoff(summarise(study), 4, Frame())
        assert picture is not None
        picture.figure.draw_without_rendering()
        boxes = sorted(
            (text.get_window_extent().y0, text.get_window_extent().y1) for text in picture.figure.axes[0].texts
        )
    assert len(boxes) == 4
    assert all(upper[0] >= lower[1] - 1 for lower, upper in pairwise(boxes))


def test_losses_part_where_they_were_planted_to(usual: Study) -> None:
    above, below = drawn(losses, usual)
    assert sorted(marks(above, "v")) == sorted([(COLOURS["default"], 3), (COLOURS["benchmark"], 2)])
    assert Counter(line.get_color() for line in above.lines if line.get_marker() == "None") == dict.fromkeys(
        COLOURS.values(), 5
    )
    spreads = {line.get_color(): line.get_ydata() for line in below.lines}
    assert spreads.keys() == {COLOURS["default"], COLOURS["benchmark"]}  # the others never part
    assert np.isnan(spreads[COLOURS["default"]][:2]).all()
    assert spreads[COLOURS["default"]][2:] == pytest.approx(4e-4, rel=0.01)
    assert below.get_yscale() == "log"


def test_trials_that_are_equal_have_no_axes_of_their_spread(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant())])
    (axes,) = drawn(losses, study)
    assert marks(axes, "v") == []


def test_a_loss_that_is_no_number_is_a_cross(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell("benchmark"), Plant())], rounds=2)
    loss = np.linspace(2, 1, 16, dtype=np.float32)
    loss[9:] = np.nan
    record = study.records()[1]
    folder = study.trial_folder(record.cell, record.number)
    make_series(1, loss=loss).write(series_file(folder))
    changes: dict[str, Any] = {"outcome": "diverged", "digests": None, "speed": None}
    replace(record, **changes).write(record_file(folder))
    axes, *_ = drawn(losses, study)
    assert marks(axes, "x") == [(COLOURS["benchmark"], 10)]


def test_a_long_training_is_drawn_in_blocks(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=1)
    series, count = make_series(), 1000
    changes = {name: np.resize(getattr(series, name), count) for name in ("step_ms", "enqueue_ms", "wait_ms", "shape")}
    changes |= {"loss": np.arange(count, dtype=np.float32), "data": np.zeros((count, 2), dtype=np.int64)}
    make_series(**changes).write(series_file(study.trial_folder(study.cells()[0].id, 0)))
    (axes,) = drawn(losses, study)
    (line,) = [line for line in axes.lines if line.get_marker() == "None"]
    assert len(line.get_xdata()) == 200
    assert (line.get_xdata()[1], line.get_ydata()[1]) == (8, 7)  # steps 6 to 10 have the losses 5 to 9


def test_equal_weights_are_filled_fields(usual: Study) -> None:
    (axes,) = drawn(equality, usual)
    fields = {(patch.get_xy(), patch.get_width(), patch.get_height()): patch.get_facecolor() for patch in axes.patches}
    assert fields.keys() == {
        *(((place, place), 1, 1) for place in range(10)),  # default and benchmark: each trial equals itself
        *(((place, place + 5), 1, 1) for place in range(5)),  # and that of the same round of the other one
        *(((place + 5, place), 1, 1) for place in range(5)),
        ((10, 10), 5, 5),
        ((15, 15), 5, 5),
        ((10, 15), 5, 5),  # the two deterministic modes gave the same weights
        ((15, 10), 5, 5),
    }
    from matplotlib.colors import to_rgba

    assert fields[(10, 15), 5, 5] == to_rgba(BETWEEN)
    assert fields[(10, 10), 5, 5] == to_rgba(COLOURS["deterministic"])
    assert [text.get_text() for text in axes.texts] == ["(T,T)", "(T,F)", "(F,T)", "(F,F)"]  # from below


def test_one_trial_is_no_pair(tmp_path: Path) -> None:
    assert drawn(equality, make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=1)) is None


def test_a_probed_study_has_plots_of_repeatability_alone(tmp_path: Path) -> None:
    probe = {"name": "ops", "steps": 2, "repeat": False}
    study = make_study(tmp_path / "study", [(make_cell(probe=probe), Plant(loss_step=2))])
    plots, lines = page_plots(study, summarise(study), Evidence.of(study))
    assert [plot.name for plot in plots] == ["losses", "equality"]
    assert lines == []


def test_every_plot_has_its_figures_in_words(usual: Study) -> None:
    plots, _ = page_plots(usual, summarise(usual), Evidence.of(usual))
    said = {plot.name: plot.alternative for plot in plots}
    assert "default (F,F): losses part at step 3; benchmark (F,T): losses part at step 2" in said["losses"]
    assert "deterministic (T,F): equal losses in every step of every trial" in said["losses"]
    assert "deterministic (T,F): bitwise, 5 of 5" in said["equality"]
    assert re.search(r"benchmark \(F,T\): 32\.\d+ .* ms; two trials disagree on 3 %", said["tradeoff"])


def test_a_picture_follows_a_dark_page_and_names_no_moment(usual: Study) -> None:
    summary = summarise(usual)
    with usual_style():
        texts = [svg(tradeoff(summary, 4, Frame()).figure, name) for name in ("a", "a", "b")]  # type: ignore[union-attr]
    assert texts[0] == texts[1] != texts[2]
    style, rest = texts[0].split("</style>", 1)
    assert all(colour in style for colour in (*LIGHT.values(), *DARK.values()))
    assert not [colour for colour in LIGHT.values() if colour.lower() in rest.lower()]
    assert "<metadata" not in texts[0] and "<!--" not in texts[0].split("<g", 1)[0]
    assert 'viewBox="0 0' in texts[0]


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""
    light, dark = sorted(map(_luminance, (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return math.fsum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_stands_out_from_the_page(colours: dict[str, str]) -> None:
    """At least 3:1, which graphics need, and 4.5:1 for text in the page's own colour."""
    assert contrast(colours["ink"], colours["card"]) > 7
    assert min(contrast(one, colours["card"]) for name, one in colours.items() if name != "card") > 3
