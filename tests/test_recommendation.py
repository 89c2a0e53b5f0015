"""Recommendations: which mode for what, and what is said where none can be named."""

from dataclasses import replace

import numpy as np
import pytest
from factory import GPU, Plant, four_modes, make_cell, make_study
from trained import answers, h200_unet, noisy, sample_of

from runner.analysis.cost import cost_of
from runner.analysis.looks import Looks
from runner.analysis.lottery import plans_of
from runner.analysis.ratio import compare
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.jsonfile import write_json
from runner.mode import MODES
from runner.plan import USUAL

SAME = "for one training of 10,000 steps"


def test_a_long_training_pays_for_tuning():
    answer = answers(h200_unet())["fastest"]
    assert answer["label"] == "benchmark (F,T)"
    # 0.5 + 11.9 + 9999 * 0.095 s, the default 0.5 + 0.59 + 9999 * 0.1212 s.
    assert answer["expected_s"] == pytest.approx(962.3, rel=0.002)
    assert answer["why"].startswith(f"least time: 16 min 2 s {SAME}, 21 % less than default (F,F)")
    # (11.9 - 0.59) / (0.1212 - 0.095), about what was measured: 440.
    steps = answer["why"].split("its tuning pays back after ")[1].split(" steps beside default (F,F)")[0]
    assert float(steps) == pytest.approx(431.7, rel=0.05)


def test_many_short_trainings_do_not():
    plan = replace(USUAL, steps=300, runs=500)
    answer = answers(h200_unet(), plan)["fastest"]
    assert answer["label"] == "default (F,F)"
    # 0.5 + 0.59 + 299 * 0.1212 s against 0.5 + 11.9 + 299 * 0.095 s.
    assert answer["expected_s"] == pytest.approx(500 * 37.33, rel=0.002)
    assert "5 h 11 min for 500 trainings of 300 steps, 8.5 % less than benchmark (F,T)" in answer["why"]
    assert "the tuning of benchmark (F,T) would pay back after 4" in answer["why"]


def test_so_the_answer_turns_where_tuning_is_paid_back():
    labels = [
        answers(h200_unet(), replace(USUAL, steps=steps))["fastest"].get("label")
        for steps in (100, 300, 432, 600, 10_000)
    ]
    assert labels == ["default (F,F)", "default (F,F)", None, "benchmark (F,T)", "benchmark (F,T)"]


def test_reproducible_is_the_least_of_those_that_repeat_and_says_what_it_costs():
    answer = answers(h200_unet())["reproducible"]
    assert answer["label"] == "deterministic_benchmark (T,T)"
    assert answer["why"].startswith(f"bitwise, 10 of 10; least time of those that repeat: 17 min 6 s {SAME}, 15 % less")
    dear = [sample_of("default", noisy(100, 5, 0), digests="own"), sample_of("deterministic", noisy(120, 5, 1))]
    answer = answers(dear)["reproducible"]
    assert answer["why"] == (
        f"bitwise, 5 of 5; the only mode here that repeats: 20 min 1 s {SAME}, 20 % more than default (F,F)"
    )


def test_money_and_energy_are_of_the_whole_plan():
    energies = {"energy_j_per_sample": 0.36}
    two = [sample_of("default", noisy(100, 5, 0), **energies), sample_of("benchmark", noisy(36, 5, 1), **energies)]
    answer = answers(two, replace(USUAL, steps=100_000, runs=10, price_per_hour=2.5))["fastest"]
    # 10 times 100,000 steps of 36 ms are 10 h; batches of 10, 0.36 J a sample.
    assert answer["expected_s"] == pytest.approx(36_010, rel=0.003)
    assert answer["cost"] == pytest.approx(25.0, rel=0.003)
    assert answer["energy_j"] == pytest.approx(3.6e6)
    assert "10 h 0 min for 10 trainings of 100,000 steps" in answer["why"]
    assert " at 2.5 an hour; 1 kWh" in answer["why"]
    answer = answers(h200_unet())["fastest"]
    assert (answer["cost"], answer["energy_j"]) == (None, None)


def test_a_tie_is_said_and_not_broken():
    two = [sample_of("default", noisy(100, 10, 0)), sample_of("benchmark", noisy(99.5, 10, 1))]
    answer = answers(two)["fastest"]["undecided"]
    assert answer.startswith("a tie within 2 %: benchmark (F,T) (16 min 3")
    assert "default (F,F) (16 min 4" in answer
    assert answer.endswith(SAME)


def test_a_tie_depends_on_the_margin():
    two = [sample_of("default", noisy(100, 10, 0)), sample_of("benchmark", noisy(98.5, 10, 1))]
    assert "a tie" in answers(two)["fastest"]["undecided"]
    assert answers(two, replace(USUAL, margin=0.005))["fastest"]["label"] == "benchmark (F,T)"


def undecided_pair(n=5):
    rng = np.random.default_rng(3)
    return [
        sample_of(mode, 100 * np.exp(rng.normal(shift, 0.02, n)))
        for mode, shift in [("default", 0), ("benchmark", -0.02)]
    ]


def test_undecided_says_how_many_more_rounds():
    answer = answers(undecided_pair(), rounds=[5])["fastest"]["undecided"]
    low, high = (int(word) for word in answer.split("needs ")[1].split(" more rounds")[0].split(" to "))
    assert 0 < low < high
    assert "not told apart yet are" in answer
    assert "default (F,F) (16 min" in answer
    assert "benchmark (F,T) (16 min" in answer


def test_the_rounds_that_it_takes_are_those_of_the_ratio():
    two = undecided_pair()
    costs = [cost_of(one, 10_000) for one in two]
    best, other = sorted(costs, key=lambda cost: cost.expected_s)
    low, high = compare(best.trainings, other.trainings, 1, 0.02, Looks.of([5])).rounds
    assert f"needs {low - 5} to {high - 5} more rounds" in answers(two, rounds=[5])["fastest"]["undecided"]


def test_a_study_that_was_looked_at_too_often_asks_for_a_new_one():
    answer = answers(undecided_pair(20), rounds=[5, 10, 20, 30])["fastest"]["undecided"]
    assert "needs a new study of " in answer or "ask a new study" in answer


def test_unpaired_trials_are_said_to_be_so():
    one, two = undecided_pair()
    elsewhere = [replace(record, environment=GPU | {"gpu_uuid": "GPU-2"}) for record in two.records]
    answer = answers([one, replace(two, records=elsewhere)], rounds=[5])["fastest"]["undecided"]
    assert answer.startswith("not told apart are ")  # which no rounds on these cards would change
    assert answer.endswith("(they ran on different cards)")


def test_too_few_steps_are_no_reason_for_more_rounds():
    two = [sample_of("default", [None] * 5), sample_of("benchmark", [None] * 5)]
    asks = "no trial has enough steps for a steady step time that counts: set train.steps to more, see notes"
    assert answers(two)["fastest"] == answers(two)["balanced"] == {"undecided": asks}


HOT = {"throttle_reasons": "hw_thermal_slowdown"}


def seen(sample, covariates):
    """The sample with these covariates after the steps of every trial."""
    return replace(sample, records=[replace(one, covariates={"after": covariates}) for one in sample.records])


@pytest.mark.parametrize(
    ("covariates", "why"),
    [
        (HOT, "whose trials were throttled"),
        ({"other_processes": 1}, "whose trials shared the device or were throttled"),
    ],
)
def test_a_mode_that_was_left_out_does_not_keep_the_others_from_a_rank(covariates, why):
    three = [sample_of("default", noisy(100, 5, 0), digests="own"), sample_of("benchmark", noisy(60, 5, 1))]
    found = answers([*three, seen(sample_of("deterministic", noisy(50, 5, 2)), covariates)])
    for question in ("fastest", "reproducible", "balanced"):
        assert found[question]["label"] == "benchmark (F,T)"
        assert found[question]["why"].endswith(f"; without deterministic (T,F), {why}")


def test_the_only_mode_that_repeats_is_named_even_if_its_speed_does_not_count():
    two = [sample_of(mode, noisy(100, 5, 0), digests="own") for mode in ("default", "benchmark")]
    answer = answers([*two, seen(sample_of("deterministic", noisy(50, 5, 2)), HOT)])["reproducible"]
    assert answer["why"] == (
        "bitwise, 5 of 5; the only mode here that repeats: its time is not known for want of a steady step time"
    )


def test_cells_that_are_both_bound_by_the_host_have_no_rank_among_each_other():
    bound = [sample_of(mode, noisy(ms, 5, 0), enqueue_ms=99.0) for mode, ms in [("default", 100), ("benchmark", 90)]]
    slow = sample_of("deterministic", noisy(150, 5, 2), enqueue_ms=10.0)
    answer = answers([*bound, slow])["fastest"]["undecided"]
    assert answer.startswith("not told apart are benchmark (F,T) (15 min ")
    assert "default (F,F) (16 min " in answer
    assert answer.endswith("(both are bound by the host)")
    fast = sample_of("deterministic", noisy(50, 5, 2), enqueue_ms=10.0)
    assert answers([*bound, fast])["fastest"]["label"] == "deterministic (T,F)"


def test_a_longer_first_step_of_a_mode_that_does_not_tune_is_no_tuning():
    two = [sample_of("default", noisy(100, 5, 0)), sample_of("deterministic", noisy(80, 5, 1), first_ms=9000.0)]
    answer = answers(two)["fastest"]
    assert answer["label"] == "deterministic (T,F)"
    assert "tuning" not in answer["why"]


def test_a_cell_whose_trials_were_all_throttled_is_not_ranked():
    one, two = sample_of("default", noisy(100, 5, 0)), sample_of("benchmark", noisy(60, 5, 1))
    found = answers([one, seen(two, HOT)])
    assert found["fastest"] == {"undecided": "needs a steady step time that counts in benchmark (F,T)"}
    assert "undecided" in found["reproducible"]


def test_balanced_passes_over_what_draws_several_plans():
    lottery = sample_of("benchmark", [*noisy(60, 5, 1), *noisy(90, 5, 2)])
    three = [sample_of("default", noisy(100, 10, 0)), lottery, sample_of("deterministic", noisy(120, 10, 3))]
    found = answers(three)
    assert found["fastest"]["label"] == "benchmark (F,T)"
    assert "the mean over the 2 plans that it drew (" in found["fastest"]["why"]
    assert "ms in 5 of 10" in found["fastest"]["why"]
    assert found["balanced"]["label"] == "default (F,F)"
    assert "does not hang on tuning (benchmark (F,T) draws 2 plans)" in found["balanced"]["why"]


def test_two_disturbed_trials_of_a_mode_that_does_not_tune_are_no_plan():
    disturbed = [*noisy(100, 8, 0), *noisy(120, 2, 2)]
    assert len(plans_of(disturbed)) == 2
    found = answers([sample_of("default", disturbed), sample_of("benchmark", noisy(150, 10, 1))])
    for question in ("fastest", "balanced"):
        assert found[question]["label"] == "default (F,F)"
        assert "plans" not in found[question]["why"]


def compiled(kind, n, **speed):
    """Two modes without benchmark, compiled."""
    train = {"batch_size": 10, "compile": kind}
    two = [sample_of(mode, noisy(ms, n, 0), **speed) for mode, ms in [("default", 100), ("deterministic", 120)]]
    return [replace(one, cell=Cell(one.cell.config | {"train": train})) for one in two]


def test_max_autotune_tunes_in_every_mode_and_plain_compiling_in_none():
    needed = answers(compiled("max-autotune", 4))["balanced"]["undecided"]
    assert needed.endswith("to tell whether default (F,F) and deterministic (T,F) draw several plans")
    assert answers(compiled("default", 4))["balanced"]["label"] == "default (F,F)"


def test_only_cudnn_tunes_for_each_size():
    """A compiler is told of a second size once, and then compiles for any."""
    assert answers(compiled("max-autotune", 5, new_shapes_ms=[30.0] * 4))["balanced"]["label"] == "default (F,F)"


def test_balanced_passes_over_sizes_that_are_each_tuned():
    sizes = {"new_shapes_ms": [30.0] * 4}
    two = [sample_of("default", noisy(100, 5, 0), **sizes), sample_of("benchmark", noisy(60, 5, 1), **sizes)]
    found = answers(two)
    assert (found["fastest"]["label"], found["balanced"]["label"]) == ("benchmark (F,T)", "default (F,F)")
    assert "benchmark (F,T) tunes for each of 5 input sizes" in found["balanced"]["why"]
    assert "steady" not in found["balanced"]["why"]


def test_balanced_is_the_fastest_where_tuning_draws_one_plan():
    found = answers(h200_unet())
    assert found["balanced"]["label"] == found["fastest"]["label"] == "benchmark (F,T)"


def test_four_trials_do_not_tell_that_there_is_one_plan_only():
    answer = answers(h200_unet(4))["balanced"]["undecided"]
    assert answer.startswith(
        "needs at least 5 trials whose speed counts, to tell whether benchmark (F,T) and deterministic"
    )


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
    assert answer["label"] == "deterministic (T,F)"
    assert answer["why"].startswith(f"{equal}; the only mode here that repeats: 8 min ")
    answer = reproducible(tmp_path / "two", differs, Plant(ratio=1.5), jitters)
    assert answer["why"].startswith(f"{equal}; least time of those that repeat: 8 min ")
    assert answer["why"].endswith(" 20 % more than default (F,F)")


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
    rivals = {"fastest": "default (F,F)", "reproducible": "deterministic (T,F)"}  # of those that tune less
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


def test_the_summary_holds_the_plan_and_what_it_costs(tmp_path):
    plan = {"steps": 100, "runs": 3, "price_per_hour": 36.0, "margin": 0.02}
    study = four_modes(tmp_path / "study")
    write_json(study.folder / "study.json", study.asked() | {"plan": plan})
    summary = summarise(study)
    default = summary["cells"][0]["speed"]
    # 0.5 s to build, 0.5 s for the first step, 99 steps.
    assert default["expected_s"] == pytest.approx(1.0 + 0.099 * default["step_ms"]["mean"])
    answer = summary["recommendation"]["fastest"]
    assert answer["label"] == "default (F,F)"
    assert answer["expected_s"] == pytest.approx(3 * default["expected_s"])
    assert answer["cost"] == pytest.approx(0.01 * answer["expected_s"])


def test_the_wrong_mode_is_called_fastest_in_at_most_five_percent_of_studies():
    """Four modes in truth alike: each name given to the fastest is a false one."""
    rng, named = np.random.default_rng(5), 0
    for _ in range(200):
        step_ms = 100 * np.exp(rng.normal(0, 0.02, (4, 5)))
        samples = [sample_of(mode, row) for mode, row in zip(MODES.values(), step_ms, strict=True)]
        named += "label" in answers(samples)["fastest"]
    assert named / 200 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
