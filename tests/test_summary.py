"""The summary of whole study folders with planted results."""

import json

import pytest
from factory import CPU, GPU, Plant, four_modes, make_cell, make_study

from runner.analysis.sample import baselines
from runner.analysis.summary import summarise
from runner.jsonfile import plain
from runner.mode import MODES

CELL_KEYS = {"cell", "label", "config", "n", "failed", "diverged", "missing", "reproducibility", "speed", "metrics"}
SPEED_KEYS = {
    "step_ms", "samples_per_s", "first_step_ms", "autotune_s", "break_even_steps", "peak_memory_bytes",
    "ratio_to_baseline",
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
    assert "undecided" in summary["recommendation"]["balanced"]


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


def test_another_gpu_of_the_same_kind_is_pooled_but_not_paired(tmp_path):
    def spread(cell, number):
        return GPU | {"gpu_uuid": f"GPU-{cell.config['cudnn']['benchmark']}"}

    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    summary = summarise(make_study(tmp_path / "study", plants, environment=spread))
    ratio = summary["cells"][1]["speed"]["ratio_to_baseline"]
    assert (ratio["paired"], ratio["verdict"], ratio["pairs"]) == (False, "faster", 0)
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
    assert levels == {0.95}
    assert [one["settings"] for one in summary["recommendations"]] == ["model=resnet", "model=unet"]


def limited(mode, limit):
    cell = make_cell(mode)
    return make_cell(mode, cudnn=cell.config["cudnn"] | {"benchmark_limit": limit})


def test_a_default_with_another_benchmark_limit_serves_as_baseline(tmp_path):
    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8)), (limited("benchmark", 0), Plant())]
    summary = summarise(make_study(tmp_path / "study", plants))
    values = [cell["speed"]["ratio_to_baseline"]["value"] for cell in summary["cells"]]
    assert values == pytest.approx([1.0, 0.8, 1.0], rel=0.01)
    assert {cell["speed"]["ratio_to_baseline"]["level"] for cell in summary["cells"]} == {1 - 0.05 / 2}
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
    undecided = {"undecided": "the flags cannot act here: no CUDA in use"}
    assert summary["recommendation"] == {"fastest": undecided, "reproducible": undecided, "balanced": undecided}


def test_ties_are_said(tmp_path):
    plants = [(make_cell(), Plant(noise=0.01)), (make_cell("benchmark"), Plant(noise=0.01))]
    answer = summarise(make_study(tmp_path / "study", plants))["recommendation"]["fastest"]
    assert "default (F,F)" in answer["undecided"]
    assert "benchmark (F,T)" in answer["undecided"]


def test_four_trials_are_too_few_to_call_reproducible(tmp_path):
    answer = summarise(four_modes(tmp_path / "study", rounds=4))["recommendation"]["reproducible"]
    assert answer == {"undecided": "needs at least 5 finished trials a cell"}


def reproducible(folder, *plants):
    study = make_study(folder, [(make_cell(mode), plant) for mode, plant in zip(MODES.values(), plants, strict=False)])
    return summarise(study)["recommendation"]["reproducible"]


def test_equal_weights_with_a_loss_that_jitters_are_reproducible_and_it_is_said(tmp_path):
    differs, jitters = Plant(loss_step=1, weights_step=1), Plant(loss_step=4, ratio=1.2)
    equal = "weights bitwise equal, 5 of 5, the logged training loss differs"
    answer = reproducible(tmp_path / "one", differs, differs, jitters)
    assert (answer["label"], answer["why"]) == ("deterministic (T,F)", f"{equal}; the only mode here that repeats")
    answer = reproducible(tmp_path / "two", differs, Plant(ratio=1.5), jitters)
    assert answer["why"] == f"{equal}; least step time, {ratio_of(answer):.3f} of the default's"


def ratio_of(answer):
    return float(answer["why"].split("least step time, ")[1].split()[0])


def test_an_evaluation_that_differs_is_not_reproducible(tmp_path):
    for name, plant in {"metrics": Plant(evaluation=True), "both": Plant(loss_step=2, evaluation=True)}.items():
        answer = reproducible(tmp_path / name, plant, plant)
        assert answer == {"undecided": "needs a mode bitwise equal in all of at least 5 trials: there is none here"}


def test_seeds_that_vary_are_told_instead_of_asking_for_another_mode(tmp_path):
    seeds = {"seeds": {"base": 0, "vary": ["order"]}}
    plants = [(make_cell(mode, **seeds), Plant(loss_step=1, weights_step=1)) for mode in ("default", "deterministic")]
    answer = summarise(make_study(tmp_path / "study", plants))["recommendation"]["reproducible"]
    assert answer == {"undecided": "needs seeds=fixed: here seeds differ by design (order)"}


def test_a_cost_of_tuning_that_was_not_seen_pays_nothing_back(tmp_path):
    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    answer = summarise(make_study(tmp_path / "study", plants))["recommendation"]["fastest"]
    assert answer["label"] == "benchmark (F,T)"
    assert "pays back" not in answer["why"]


def test_tuning_pays_back_beside_the_fastest_that_answers_the_same_question(tmp_path):
    summary = summarise(four_modes(tmp_path / "study"))
    step_ms = {cell["label"]: cell["speed"]["step_ms"]["mean"] for cell in summary["cells"]}
    tuning_s = {cell["label"]: cell["speed"]["autotune_s"] for cell in summary["cells"]}
    rivals = {"fastest": "default (F,F)", "reproducible": "deterministic (T,F)"}
    for question, rival in rivals.items():
        answer = summary["recommendation"][question]
        own = answer["label"]
        steps = tuning_s[own] * 1000 / (step_ms[rival] - step_ms[own])
        assert answer["why"].endswith(f"its tuning pays back after {steps:.0f} steps beside {rival}")


def test_steps_bound_by_the_host_are_no_reason_for_more_rounds(tmp_path):
    plants = [(make_cell(mode), Plant(enqueue_share=0.97, noise=0.05)) for mode in ("default", "benchmark")]
    answers = summarise(make_study(tmp_path / "study", plants))["recommendation"]
    assert {one["undecided"] for one in answers.values()} == {
        "every step is bound by the host, so that the flags cannot matter"
    }
