"""The figures of a cell under the names that MLflow shows."""

import math

from summaries import make_summary

from runner.tracking.figures import cell_figures


def test_figures_of_a_cell_leave_out_what_is_unknown() -> None:
    ratio = {"value": None, "ci95": None, "verdict": "inert"}
    cell = {"n": 1, "failed": 0, "diverged": 0, "reproducibility": {"verdict": "single"}, "metrics": {}}
    speed = {"step_ms": None, "host_bound": True, "wait_ms": math.nan, "ratio_to_baseline": ratio}
    none = {"_trials_finished": 1, "_trials_failed": 0, "_trials_diverged": 0}
    assert cell_figures({**cell, "speed": speed}) == none


def test_every_new_figure_has_its_unit_in_its_name_and_lists_are_left_out() -> None:
    figures = {"p99_ms": 44.4, "steps_s": 95.9, "new_shape_ms": 1900.0, "compile_s": 12.3, "energy_j_per_sample": 0.01}
    figures |= {"cold_first_step_ms": 13600.0, "cold_trials": 1, "expected_s": 412.0, "spread": 1.2}
    plans = [{"step_ms": 12.1, "trials": 6, "ratio": 0.85}, {"step_ms": 14.5, "trials": 4, "ratio": 1.02}]
    left_out = [{"trial": 3, "why": "heat"}]
    (usual,), (cell,) = [
        make_summary(("default", speed))["cells"] for speed in ({}, {**figures, "plans": plans, "left_out": left_out})
    ]
    shown, before = cell_figures(cell), cell_figures(usual)
    assert {name: shown[f"speed/{name}"] for name in figures} == figures
    assert set(shown) - set(before) <= {f"speed/{name}" for name in figures}


def test_outputs_are_not_counted_as_weights() -> None:
    (cell,) = make_summary(("default", {}), settings={"phase": "infer"})["cells"]
    shown = cell_figures(cell)
    assert shown["_distinct_outputs"] == shown["repeats/unique_outputs"] == 1
    assert not [name for name in shown if "weight" in name]


def test_where_outputs_differ_is_named_after_them() -> None:
    (cell,) = make_summary(("default", {}), settings={"phase": "infer"})["cells"]
    places = {"weights_equal_after": 8, "weights_differ_after": 16, "weight_l2": 0.5, "unit_weight_l2_ci95": [0.1, 0.2]}
    infer = cell_figures(cell | {"reproducibility": cell["reproducibility"] | places})
    assert (infer["repeats/outputs_equal_after"], infer["repeats/outputs_differ_after"]) == (8, 16)
    assert not [name for name in infer if "weight" in name]
    (cell,) = make_summary(("default", {}))["cells"]
    train = cell_figures(cell | {"reproducibility": cell["reproducibility"] | places})
    assert (train["repeats/weights_equal_after"], train["repeats/weights_differ_after"]) == (8, 16)
    assert train["repeats/weight_l2"] == 0.5
    assert not [name for name in train if "outputs" in name]
