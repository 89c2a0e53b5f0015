"""The price of changing input sizes: told above everything else where there is one."""

import pytest
from factory import make_cell
from summaries import make_summary

from runner.report.family import families, settings_of
from runner.report.markdown import markdown
from runner.report.sizes import sizes_words
from runner.report.table import header, rows

# 48 sizes, 96 steps of 27 ms: with benchmark 47 new sizes at 1.9 s more each.
TUNED = {"steps": 96, "shapes": 48, "steps_s": 95.9, "new_shape_ms": 1900.0, "new_shapes_s": 90.6}
UNTUNED = {"steps": 96, "shapes": 48, "steps_s": 5.9, "new_shape_ms": 60.0, "new_shapes_s": 4.1}


def test_the_total_stands_above_the_answers_and_in_the_table():
    summary = make_summary(("default", UNTUNED), ("benchmark", TUNED))
    lines = markdown(summary).splitlines()
    assert lines[4] == (
        "- with 48 input sizes, all 96 steps took 95.9 s with benchmark (F,T), 5.90 s with default (F,F): "
        "each new size costs 1.90 s with benchmark (F,T), 0.0600 s with default (F,F)"
    )
    assert lines[5].startswith("- for one training")
    column = header(summary).index("all steps s")
    assert [row[column] for row in rows(summary)] == ["5.90", "95.9"]


def test_one_size_is_no_column_and_no_line():
    summary = make_summary(("default", {}), ("benchmark", {}))
    assert sizes_words(summary) == []
    assert "all steps s" not in header(summary)


@pytest.mark.parametrize(
    ("new_shape_ms", "lines"),
    [(4.0, 0), (6.0, 1), (-3.0, 0), (None, 0)],  # 47 of them are 0.188 s and 0.282 s of 5 s
)
def test_a_price_below_one_in_twenty_is_no_line(new_shape_ms, lines):
    speed = {"steps": 96, "shapes": 48, "steps_s": 5.0, "new_shape_ms": new_shape_ms, "new_shapes_s": 2.6}
    assert len(sizes_words(make_summary(("default", speed)))) == lines


@pytest.mark.parametrize(
    ("new_shape_ms", "words"), [(-12.0, "nothing measurable"), (49.0, "nothing measurable"), (51.0, "0.0510 s")]
)
def test_what_is_lost_in_noise_is_no_cost(new_shape_ms, words):
    (line,) = sizes_words(
        make_summary(("default", UNTUNED | {"new_shape_ms": new_shape_ms, "steps_s": 90.0}), ("benchmark", TUNED))
    )
    assert line.endswith(f"each new size costs 1.90 s with benchmark (F,T), {words} with default (F,F)")


def test_a_small_price_for_many_sizes_is_told():
    (line,) = sizes_words(
        make_summary(("default", {"steps": 200, "shapes": 100, "steps_s": 8.0, "new_shape_ms": 20.0}))
    )
    assert line.endswith("each new size costs 0.0200 s with default (F,F)")


def test_without_cuda_no_mode_is_blamed():
    summary = make_summary(("default", UNTUNED), ("benchmark", TUNED))
    summary["environments"][0]["device"] = "cpu"
    assert sizes_words(summary) == []


def test_settings_are_told_apart():
    fp32 = make_summary(("default", UNTUNED), ("benchmark", TUNED))
    bf16 = make_summary(("default", UNTUNED), ("benchmark", TUNED), settings={"precision": "bf16"})
    first, second = sizes_words({**fp32, "cells": [*fp32["cells"], *bf16["cells"]]})
    assert first == second  # planted with the same figures


def test_families_differ_in_the_mode_alone():
    summary = make_summary(("default", {}), ("benchmark", {}), ("deterministic", {}))
    default, benchmark, deterministic = summary["cells"]
    limit = benchmark["config"]["cudnn"] | {"benchmark_limit": 0}
    benchmark["config"] = benchmark["config"] | {"cudnn": limit}
    deterministic["config"] = make_cell("deterministic", precision="bf16").config
    assert families(summary) == [[default, benchmark], [deterministic]]
    deterministic["config"] = make_cell("deterministic").config
    deterministic["environment"] = "other"
    assert families(summary) == [[default, benchmark], [deterministic]]


def test_settings_are_what_all_labels_of_a_family_say():
    family = [{"label": label} for label in ("default (F,F), a=1, b=2", "benchmark (F,T), a=1, b=3")]
    assert settings_of(family) == ["a=1"]
