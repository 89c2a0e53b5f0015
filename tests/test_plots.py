"""Plots: what they show, of which studies there are none, and that equal records give equal bytes."""

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from factory import CPU, GPU, Plant, four_modes, make_cell, make_series, make_study
from PIL import Image

from runner.analysis.evidence import Evidence
from runner.analysis.summary import summarise
from runner.layout import record_file, series_file
from runner.mode import MODES
from runner.report.canvas import COLOURS, Frame, png, spread, usual_style
from runner.report.curves import Curve, left_out, samples_in
from runner.report.curves import panels_of as first_panels
from runner.report.drawing import ratios, step_time, total_time
from runner.report.plots import alternative_text, draw
from runner.series import Series

ALL = ["step_time.png", "total_time.png", "ratios.png"]
MOST_BYTES = 80_000


@pytest.fixture(autouse=True)
def without_flushing(monkeypatch):
    """No power goes here, and half of the time would be spent on writing through to the disk."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


def drawn(study):
    summary = summarise(study)
    return draw(study, summary, study.folder / "drawn"), summary


def names(study):
    return [path.name for path in drawn(study)[0]]


def timed(study, step_ms, shape=None):
    """Give every trial the steps `step_ms(cell, number)` and a record that says the same of them."""
    cells = {cell.id: cell for cell in study.cells()}
    for record in study.records():
        times = np.asarray(step_ms(cells[record.cell], record.number), dtype=float)
        kinds = np.zeros(len(times), dtype=np.int64) if shape is None else shape
        first = np.isin(np.arange(len(times)), np.unique(kinds, return_index=True)[1])
        plain = {field.name: getattr(make_series(record.number), field.name) for field in fields(Series)}
        count = len(times)
        per_step = {"enqueue_ms": times * 0.3, "wait_ms": np.zeros(count), "loss": np.zeros(count, dtype=np.float32)}
        series = Series(
            **plain | per_step | {"step_ms": times, "shape": kinds, "data": np.zeros((count, 2), dtype=int)}
        )
        speed = replace(
            record.speed,
            steps=count,
            first_step_ms=times[0],
            step_ms=float(np.median(times[~first])) if not first.all() else None,
            new_shapes_ms=[float(one) for one in times[first][1:]],
            steps_s=times.sum() / 1000,
        )
        folder = study.trial_folder(record.cell, record.number)
        series.write(series_file(folder))
        replace(record, speed=speed).write(record_file(folder))
    return study


def tuned(cell, number):
    """Sixty steps: benchmark takes 1.6 s more for the first and then 30 ms instead of 40."""
    benchmark = cell.config["cudnn"]["benchmark"]
    steps = np.full(60, 30.0 if benchmark else 40.0) + 0.01 * number
    steps[0] = 2100.0 if benchmark else 500.0
    return steps


@pytest.fixture
def study(tmp_path):
    cells = [(make_cell("benchmark"), Plant()), (make_cell("default"), Plant())]
    return timed(make_study(tmp_path / "study", cells), tuned)


def panels_of(study, summary):
    return first_panels(study, summary, samples_in(Evidence.of(study)), 6)


def figure_of(plot, study):
    summary = summarise(study)
    panels = panels_of(study, summary)
    with usual_style():
        picture = plot(summary, panels, Frame("the foot"))
        return picture and picture.figure


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def lines(axes, colour):
    """The points of every line of a colour that has any."""
    found = [line.get_xydata() for line in axes.lines if line.get_color() == colour]
    return [points for points in found if len(points)]


def test_three_plots_of_the_size_of_a_page(study):
    paths, _ = drawn(study)
    assert [path.name for path in paths] == ALL
    for path in paths:
        assert path.stat().st_size < MOST_BYTES
        with Image.open(path) as picture:
            assert (picture.format, picture.width, picture.info.keys() & {"Software", "Creation Time"}) == (
                "PNG",
                1050,
                set(),
            )


def test_equal_records_give_equal_bytes_whatever_the_style_of_the_user(study):
    import matplotlib

    first = [path.read_bytes() for path in drawn(study)[0]]
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "figure.dpi": 30}):
        assert [path.read_bytes() for path in drawn(study)[0]] == first
        assert matplotlib.rcParams["font.size"] == 20
    timed(study, lambda cell, number: tuned(cell, number) * 1.05)
    assert [path.read_bytes() for path in drawn(study)[0]] != first


def test_first_steps_stand_on_a_logarithmic_axis_and_steady_ones_on_their_own(study):
    above, below = figure_of(step_time, study).axes
    assert (above.get_yscale(), below.get_yscale()) == ("log", "linear")
    line, ring = lines(above, COLOURS["benchmark"])
    assert ring.tolist() == [[1, 2100.0]]
    assert line[0].tolist() == [2, 30.02]
    assert len(lines(below, COLOURS["benchmark"])) == 1
    low, high = below.get_ylim()
    assert 25 < low < 30 and 40 < high < 45


def test_first_steps_like_the_others_need_one_axis(study):
    timed(study, lambda cell, number: [44.0] + [40.0] * 20)
    (axes,) = figure_of(step_time, study).axes
    line, ring = lines(axes, COLOURS["default"])
    assert (ring.tolist(), len(line)) == ([[1, 44.0]], 20)
    assert axes.get_ylim()[1] > 44


def test_every_line_has_its_name_and_time_beside_it(study):
    found = texts(figure_of(step_time, study))
    assert "benchmark (F,T)\n30.0 ms" in found
    assert "default (F,F)\n40.0 ms" in found
    assert "(F,T) first step 2100 ms" in found


def test_steps_bound_by_the_host_are_called_so(tmp_path):
    study = make_study(tmp_path / "study", [(make_cell(), Plant(enqueue_share=0.99))])
    assert any("bound by the host" in text for text in texts(figure_of(step_time, study)))


def test_the_first_step_of_every_shape_is_a_ring(study):
    def sizes(cell, number):
        steps = np.full(60, 40.0)
        steps[::20] = 1900.0 if cell.config["cudnn"]["benchmark"] else 60.0
        return steps

    above, below = figure_of(step_time, timed(study, sizes, shape=np.repeat([0, 1, 2], 20))).axes
    line, rings = lines(above, COLOURS["benchmark"])
    assert rings.tolist() == [[1, 1900.0], [21, 1900.0], [41, 1900.0]]
    assert set(line[:, 1]) == {40.0}
    assert below.get_ylim()[1] < 50


def test_the_range_over_trials_is_shaded(study):
    timed(study, lambda cell, number: [40.0 + number] * 20)
    summary = summarise(study)
    curve = panels_of(study, summary)[0].curves[0]
    steps, middle, least, most = curve.steady_over_trials(1)
    assert (steps[0], middle[0], least[0], most[0]) == (2, 42.0, 40.0, 44.0)


def test_long_trainings_are_drawn_in_blocks_in_which_a_spike_is_no_range(study):
    def spike(cell, number):
        steps = np.full(1000, 40.0)
        steps[500] = 400.0
        return steps

    curve = panels_of(timed(study, spike), summarise(study))[0].curves[0]
    steps, middle, least, most = curve.steady_over_trials(4)
    assert len(steps) == 250 and steps[1] == 6.5
    assert {*middle, *least, *most} == {40.0}
    assert "trials and 4 steps" in "".join(text.get_text() for text in figure_of(step_time, study).texts)


def test_tuning_pays_where_the_lines_cross(study):
    (axes,) = figure_of(total_time, study).axes
    benchmark, default = COLOURS["benchmark"], COLOURS["default"]
    measured, foretold, diamond = lines(axes, benchmark)
    assert (len(measured), len(foretold), foretold[-1][0]) == (61, 2, 200)
    assert measured[1].tolist() == pytest.approx([1, 2.1])
    assert diamond[0].tolist() == pytest.approx([160, 2.1 + 159 * 0.03], rel=0.01)  # 1.6 s at 10 ms a step
    other = np.vstack(lines(axes, default))
    assert np.interp(160, other[:, 0], other[:, 1]) == pytest.approx(diamond[0][1], rel=0.01)
    assert any(text.endswith("s for 200 steps\npays back after 160 steps") for text in texts(axes.figure))


def test_a_break_even_beyond_the_plan_is_told_and_not_drawn(study):
    timed(study, lambda cell, number: far(cell))
    (axes,) = figure_of(total_time, study).axes
    assert axes.get_xlim() == (0, 60)
    assert any("pays back after 10,150 steps" in text for text in texts(axes.figure))


def far(cell):
    """Tuning of 101.5 s for 10 ms a step."""
    benchmark = cell.config["cudnn"]["benchmark"]
    return [102_000.0 if benchmark else 500.0] + [30.0 if benchmark else 40.0] * 59


def test_ratios_have_interval_margin_and_verdict(tmp_path):
    study = four_modes(tmp_path / "study")
    (axes,) = figure_of(ratios, study).axes
    ratio = next(cell for cell in summarise(study)["cells"] if cell["label"] == "benchmark (F,T)")["speed"][
        "ratio_to_baseline"
    ]
    rounds, estimate = lines(axes, COLOURS["benchmark"])
    assert len(rounds) == 5
    assert estimate[0].tolist() == [ratio["value"], 2]  # the second of four from above
    bars = {tuple(bar.get_segments()[0][:, 0]) for bar in axes.collections}
    assert tuple(ratio["ci95"]) in bars
    band = next(patch for patch in axes.patches)
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((1 / 1.02, 1.02))
    assert any("20 % faster" in text for text in texts(axes.figure))


def test_plans_are_told_and_every_round_is_a_dot(tmp_path):
    cells = [(make_cell("default"), Plant()), (make_cell("benchmark"), Plant())]
    study = make_study(tmp_path / "study", cells, rounds=10)
    drawn_plan = {False: [40.0] * 2, True: [30.0, 50.0]}
    timed(
        study,
        lambda cell, number: [drawn_plan[cell.config["cudnn"]["benchmark"]][number % 2] * (1 + number / 1e4)] * 20,
    )
    assert any("draws 2 plans" in text for text in texts(figure_of(step_time, study)))
    (axes,) = figure_of(ratios, study).axes
    rounds = lines(axes, COLOURS["benchmark"])[0]
    assert sorted(np.round(rounds[:, 0], 3)) == [0.75] * 5 + [1.25] * 5


def test_an_interval_beyond_twofold_goes_on_with_arrows(tmp_path):
    cells = [(make_cell("default"), Plant(noise=0.3)), (make_cell("benchmark"), Plant(noise=0.3))]
    (axes,) = figure_of(ratios, make_study(tmp_path / "study", cells, rounds=2)).axes
    assert {line.get_marker() for line in axes.lines} >= {"<", ">"}
    assert axes.get_xlim()[1] < 4


def test_colours_and_order_are_the_same_in_all_plots(tmp_path):
    study = four_modes(tmp_path / "study")
    for plot in (step_time, total_time):
        colours = list(dict.fromkeys(line.get_color() for line in figure_of(plot, study).axes[-1].lines))
        assert colours == list(COLOURS.values())
    beside = figure_of(ratios, study).axes[0].texts
    from_above = sorted(beside, key=lambda text: -text.get_position()[1])
    assert [text.get_color() for text in from_above] == list(COLOURS.values())


def test_settings_have_panels_of_their_own_and_the_small_print_counts_them(tmp_path, monkeypatch):
    cells = [make_cell(mode, precision=f"p{index}") for index in (0, 1) for mode in ("default", "benchmark")]
    study = make_study(tmp_path / "study", [(cell, Plant()) for cell in cells], rounds=2)
    summary = summarise(study)
    panels = panels_of(study, summary)
    assert [panel.settings for panel in panels] == ["precision=p0", "precision=p1"]
    assert [curve.name for curve in panels[0].curves] == ["default (F,F)", "benchmark (F,T)"]
    assert len(figure_of(ratios, study).axes) == 2
    given = []
    monkeypatch.setattr("runner.report.plots.MOST_PANELS", 1)
    monkeypatch.setattr("runner.report.plots.PLOTS", {"one": lambda *arguments: given.append(arguments)})
    assert draw(study, summary, tmp_path / "drawn") == []
    _, shown, frame = given[0]
    assert [panel.settings for panel in shown] == ["precision=p0"]
    assert frame.foot == "1 of 2 settings are drawn. 2 trials a mode. NVIDIA H200, torch 2.14.1"


def test_cells_of_one_mode_in_one_panel_have_other_lines(tmp_path):
    cudnn = make_cell("benchmark").config["cudnn"]
    cells = [make_cell("default"), make_cell("benchmark"), make_cell("benchmark", cudnn=cudnn | {"benchmark_limit": 0})]
    (axes,) = figure_of(step_time, make_study(tmp_path / "study", [(cell, Plant()) for cell in cells])).axes
    styles = [line.get_linestyle() for line in axes.lines if line.get_color() == COLOURS["benchmark"]]
    assert {"-", "--"} <= set(styles)


@pytest.mark.parametrize(
    "plants",
    [
        [(make_cell(mode, probe={"name": "ops", "steps": 2, "repeat": False}), Plant()) for mode in MODES.values()],
        [(make_cell(mode), Plant(outcomes=dict.fromkeys(range(5), "failed"))) for mode in MODES.values()],
    ],
    ids=["probe", "failed"],
)
def test_no_figures_of_speed_no_plots_and_no_folder(tmp_path, plants):
    study = make_study(tmp_path / "study", plants)
    assert names(study) == []
    assert not (study.folder / "drawn").exists()


def test_one_cell_has_no_ratios(tmp_path):
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=1, environment=lambda cell, number: CPU)
    assert names(study) == ALL[:2]


def test_one_step_only(study):
    timed(study, lambda cell, number: [40.0])
    assert names(study) == ALL[:2]
    assert any("too few steps" in text for text in texts(figure_of(step_time, study)))


def test_latency_is_called_so(tmp_path):
    cells = [(make_cell(mode, phase="infer"), Plant()) for mode in ("default", "benchmark")]
    study = make_study(tmp_path / "study", cells)
    (axes,) = figure_of(step_time, study).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("batch", "latency (ms)")
    assert figure_of(ratios, study).axes[0].get_xlabel() == "latency / default's"
    assert any("for 16 batches" in text for text in texts(figure_of(total_time, study)))


def test_a_damaged_series_is_left_out_and_named(study):
    benchmark = study.cells()[0].id
    series_file(study.trial_folder(benchmark, 2)).write_bytes(b"no series")
    paths, summary = drawn(study)
    assert len(paths) == 3
    panels = panels_of(study, summary)
    assert panels[0].curves[0].trials == [0, 1, 3, 4]
    assert left_out(summary, panels) == ["benchmark (F,T) trial 2"]


def test_times_that_no_clock_shows_are_left_out_and_named(study):
    broken = study.cells()[1].id
    timed(study, lambda cell, number: [40.0, np.inf if (cell.id, number) == (broken, 3) else 40.0] + [40.0] * 20)
    # a record says what it likes of it: the series is what is drawn
    summary = summarise(study)
    assert left_out(summary, panels_of(study, summary)) == ["default (F,F) trial 3"]


def test_environments_are_not_mixed(tmp_path):
    cells = [(make_cell("default"), Plant()), (make_cell("benchmark"), Plant())]
    other = GPU | {"gpu_name": "NVIDIA A100"}
    study = make_study(
        tmp_path / "study", cells, rounds=6, environment=lambda cell, number: other if number < 2 else GPU
    )
    summary = summarise(study)
    panels = panels_of(study, summary)
    assert [(panel.settings, panel.curves[0].trials) for panel in panels] == [
        ("gpu_name=NVIDIA A100", [0, 1]),
        ("gpu_name=NVIDIA H200", [2, 3, 4, 5]),
    ]
    assert left_out(summary, panels) == []


def test_alternative_texts_have_the_figures(study):
    paths, summary = drawn(study)
    said = {path.stem: alternative_text(path.stem, summary) for path in paths}
    assert "benchmark (F,T): 30.0" in said["step_time"]
    assert said["total_time"] == "Time of all steps so far. benchmark (F,T): pays back after 160 steps"
    assert "25 % faster" in said["ratios"]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([0.5, 2.0], [0.5, 2.0]),  # where they are wanted
        ([1.0, 1.0], [1.0, 1.4]),  # side by side
        ([2.9, 2.9], [2.4, 2.8]),  # not above the axes
        ([-1.0, 0.0], [0.2, 0.6]),  # not below
    ],
)
def test_texts_lie_near_their_lines_and_not_over_each_other(wanted, places):
    assert spread(wanted, [0.4, 0.4], 3.0) == pytest.approx(places)


def test_strange_titles_are_drawn_as_they_stand():
    with usual_style():
        picture, _ = Frame("$").picture(r"a $\broken formula" + "\x1b[31m" + "x" * 5000, "$", [1.0])
        assert len(png(picture.figure)) > 100
    assert "\x1b" not in picture.figure.texts[0].get_text()


def test_a_curve_without_a_steady_step_foretells_nothing():
    cell = {"speed": {"step_ms": None, "break_even_steps": "never"}}
    curve = Curve(cell, "name", [0], np.array([[1000.0, 500.0]]), np.array([[True, False]]), np.empty(0))
    steps, total_s = curve.total_s(100)
    assert (steps.tolist(), total_s.tolist()) == ([0, 1, 2], [0.0, 1.0, 1.5])
    assert curve.break_even_steps is None


def test_the_report_loads_nothing_heavy_until_it_is_written():
    heavy = "{'matplotlib', 'PIL', 'jinja2', 'scipy'}"
    code = f"import runner.report, runner.report.html, sys; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def test_matplotlib_without_a_folder_of_its_own_says_nothing_at_the_end_of_a_study(study):
    done = subprocess.run(
        [sys.executable, "-m", "runner.report", str(study.folder)],
        env=os.environ | {"MPLCONFIGDIR": "/proc/none"},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert study.plot("ratios").is_file()
