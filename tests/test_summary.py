"""The summary of whole study folders with planted results."""

import json
from dataclasses import replace

import pytest
from factory import CPU, GPU, Plant, four_modes, make_cell, make_study

from runner.analysis.sample import baselines
from runner.analysis.summary import summarise
from runner.jsonfile import plain
from runner.layout import record_file

CELL_KEYS = {"cell", "label", "config", "n", "failed", "diverged", "missing", "reproducibility", "speed", "metrics"}
SPEED_KEYS = {
    "step_ms", "samples_per_s", "first_step_ms", "autotune_s", "break_even_steps", "peak_memory_bytes",
    "ratio_to_baseline", "p99_ms", "steps_s", "shapes", "new_shape_ms", "new_shapes_s", "compile_s",
    "energy_j_per_sample", "evaluate_samples_per_s", "cold_first_step_ms", "cold_trials", "plans", "spread", "left_out",
}  # fmt: skip
REPRODUCIBILITY_KEYS = {
    "verdict", "unique_weights", "bound_95", "first_diverging_step", "disagreement", "weight_l2",
}  # fmt: skip


def by_label(summary):
    return {cell["label"]: cell for cell in summary["cells"]}


def test_the_usual_study(tmp_path):
    summary = summarise(four_modes(tmp_path / "study"))
    cells = by_label(summary)
    assert list(cells) == [
        "default (F,F)", "benchmark (F,T)", "deterministic (T,F)", "deterministic_benchmark (T,T)"
    ]  # fmt: skip
    verdicts = [cell["speed"]["ratio_to_baseline"]["verdict"] for cell in cells.values()]
    assert verdicts == ["equivalent", "faster", "slower", "faster"]
    assert [cell["reproducibility"]["verdict"] for cell in cells.values()] == ["differs", "differs"] + ["bitwise"] * 2
    assert cells["benchmark (F,T)"]["speed"]["autotune_s"] == pytest.approx(2.0)
    assert cells["benchmark (F,T)"]["speed"]["break_even_steps"] == pytest.approx(250, rel=0.05)
    assert summary["recommendation"]["fastest"]["label"] == "benchmark (F,T)"
    assert summary["recommendation"]["reproducible"]["label"] == "deterministic_benchmark (T,T)"
    assert summary["recommendation"]["balanced"]["label"] == "benchmark (F,T)"


def test_schema_is_the_promised_one_and_json(tmp_path):
    summary = summarise(four_modes(tmp_path / "study", rounds=2))
    assert {"schema", "study", "trials", "partial", "damaged", "environments", "cells", "recommendation"} <= set(
        summary
    )
    for cell in summary["cells"]:
        assert set(cell) >= CELL_KEYS
        assert set(cell["speed"]) >= SPEED_KEYS
        assert set(cell["reproducibility"]) >= REPRODUCIBILITY_KEYS
        assert {"n", "mean", "sd", "ci95", "min", "max"} <= set(cell["metrics"]["accuracy"])
    json.dumps(plain(summary), allow_nan=False)


def test_outcomes_are_counted_apart_and_holes_stay_holes(tmp_path):
    outcomes = {0: "failed", 1: "timed_out", 2: "interrupted", 3: "diverged"}
    plant = Plant(outcomes=outcomes, metrics={5: {"accuracy": None}})
    cell = summarise(make_study(tmp_path / "study", [(make_cell(), plant)], rounds=7))["cells"][0]
    assert (cell["n"], cell["failed"], cell["diverged"]) == (3, 3, 1)
    assert cell["metrics"]["accuracy"]["mean"] is None
    assert cell["metrics"]["accuracy"]["n"] == 2
    assert [trial["trial"] for trial in cell["unfinished"]] == [0, 1, 2, 3]


def test_a_cell_without_a_finished_trial_is_no_error(tmp_path):
    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(outcomes=dict.fromkeys(range(5), "failed")))]
    summary = summarise(make_study(tmp_path / "study", plants))
    cell = summary["cells"][1]
    assert (cell["n"], cell["speed"]["step_ms"], cell["reproducibility"]["verdict"]) == (0, None, None)
    assert "undecided" in summary["recommendation"]["fastest"]


def test_a_study_without_records_is_no_error(tmp_path):
    summary = summarise(make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=0))
    assert summary["environments"] == []
    assert "none" in summary["recommendation"]["fastest"]["undecided"]


def test_environments_are_never_pooled(tmp_path):
    def moved(cell, number):
        return GPU | {"driver": "580" if number < 3 else "590"}

    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    summary = summarise(make_study(tmp_path / "study", plants, environment=moved))
    assert [environment["trials"] for environment in summary["environments"]] == [6, 4]
    assert [cell["n"] for cell in summary["cells"]] == [3, 2, 3, 2]
    assert summary["cells"][1]["label"] == "default (F,F), driver=590"
    assert [cell["speed"]["ratio_to_baseline"]["pairs"] for cell in summary["cells"][2:]] == [3, 2]
    assert "2 settings" in summary["recommendation"]["fastest"]["undecided"]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("gpu_name", ("NVIDIA H200", "NVIDIA A100")),
        ("torch", ("2.14.1", "2.11.0")),
        ("threads", (8, 16)),
        ("conv_precision", ("ieee", "tf32")),
        ("workspace", (":4096:8", ":16:8")),
        ("workspace", (None, ":4096:8")),
        ("exclusive", (True, False)),
    ],
)
def test_trials_from_elsewhere_are_split_in_every_figure(tmp_path, key, values):
    """The second environment is 10 % faster for benchmark and twice as slow for all: a pool would show neither."""

    def moved(cell, number):
        return GPU | {key: values[number % 2]}

    def places(summary):
        return [environment[key] for environment in summary["environments"]]

    cells = [make_cell(), make_cell("benchmark")]
    study = make_study(tmp_path / "study", [(cell, Plant()) for cell in cells], rounds=6, environment=moved)
    for record in study.records():
        slow = 2 if record.number % 2 else 1
        gain = 0.9 if record.number % 2 and record.cell == cells[1].id else 1
        speed = replace(record.speed, step_ms=40.0 * slow * gain, first_step_ms=500.0 * slow)
        replace(record, speed=speed).write(record_file(study.trial_folder(record.cell, record.number)))
    summary = summarise(study)
    assert places(summary) == list(values)
    assert [environment["trials"] for environment in summary["environments"]] == [6, 6]
    figures = [cell["speed"] for cell in summary["cells"]]
    assert [cell["label"] for cell in summary["cells"]] == [
        f"{mode}, {key}={value}" for mode in ("default (F,F)", "benchmark (F,T)") for value in values
    ]
    assert [(one["step_ms"]["n"], one["step_ms"]["mean"]) for one in figures] == [(3, 40), (3, 80), (3, 40), (3, 72)]
    assert [one["first_step_ms"] for one in figures] == [500, 1000, 500, 1000]
    assert [one["ratio_to_baseline"]["value"] for one in figures] == pytest.approx([1, 1, 1, 0.9])
    assert [one["ratio_to_baseline"]["pairs"] for one in figures[2:]] == [3, 3]
    assert [one["plans"] for one in figures] == [[]] * 4
    assert [cell["reproducibility"]["trials"] for cell in summary["cells"]] == [3] * 4


def test_another_gpu_of_the_same_kind_is_pooled_but_not_paired(tmp_path):
    def spread(cell, number):
        return GPU | {"gpu_uuid": f"GPU-{cell.config['cudnn']['benchmark']}"}

    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    summary = summarise(make_study(tmp_path / "study", plants, environment=spread))
    ratio = summary["cells"][1]["speed"]["ratio_to_baseline"]
    assert (ratio["paired"], ratio["verdict"], ratio["pairs"]) == (False, "undecided", 0)
    assert ratio["why"] == "they ran on different cards"
    assert len(summary["environments"]) == 1


def test_baseline_has_the_same_other_settings(tmp_path):
    unet = {"model": {"name": "unet"}}
    plants = [
        (make_cell(), Plant()),
        (make_cell("benchmark"), Plant(ratio=0.8)),
        (make_cell(**unet), Plant(ratio=3.0)),
        (make_cell("benchmark", **unet), Plant(ratio=3.6)),
    ]
    summary = summarise(make_study(tmp_path / "study", plants))
    values = [cell["speed"]["ratio_to_baseline"]["value"] for cell in summary["cells"]]
    assert values == pytest.approx([1.0, 0.8, 1.0, 1.2], rel=0.01)
    levels = {cell["speed"]["ratio_to_baseline"]["level"] for cell in summary["cells"]}
    assert levels == {1 - 0.05 / 3}  # one comparison a family, and a look at 5 rounds has a third of the 5 %
    assert [one["settings"] for one in summary["recommendations"]] == ["model=resnet", "model=unet"]


def limited(mode, limit):
    cell = make_cell(mode)
    return make_cell(mode, cudnn=cell.config["cudnn"] | {"benchmark_limit": limit})


def test_a_default_with_another_benchmark_limit_serves_as_baseline(tmp_path):
    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8)), (limited("benchmark", 0), Plant())]
    summary = summarise(make_study(tmp_path / "study", plants))
    values = [cell["speed"]["ratio_to_baseline"]["value"] for cell in summary["cells"]]
    assert values == pytest.approx([1.0, 0.8, 1.0], rel=0.01)
    assert {cell["speed"]["ratio_to_baseline"]["level"] for cell in summary["cells"]} == {1 - 0.05 / 3 / 2}
    (answer,) = summary["recommendations"]
    assert answer["cells"] == [cell["cell"] for cell in summary["cells"]]
    assert answer["settings"] == ""


def test_a_default_with_the_same_benchmark_limit_comes_first():
    cells = [make_cell(), limited("benchmark", 5), limited("default", 5), limited("benchmark", 0)]
    found = baselines(cells)
    assert [found[cell.id] for cell in cells] == [cells[0].id, cells[2].id, cells[2].id, cells[0].id]
    assert len(set(baselines(cells[1::2]).values())) == 1


def test_inert_studies_rank_nothing(tmp_path):
    summary = summarise(four_modes(tmp_path / "study", environment=lambda cell, number: CPU))
    assert {cell["speed"]["ratio_to_baseline"]["verdict"] for cell in summary["cells"]} == {"inert"}
    assert all(cell["speed"]["autotune_s"] is None for cell in summary["cells"])
    undecided = {"undecided": "without CUDA the flags cannot act: leave them as they are, or measure on a GPU"}
    assert summary["recommendation"] == {"fastest": undecided, "reproducible": undecided, "balanced": undecided}
