"""The tables: a column where there is something to show, and the words of the phase that was measured."""

import pytest
from factory import Plant, four_modes, make_cell, make_study
from summaries import REPRODUCIBILITY, SPEED, make_summary

from runner.analysis.summary import summarise
from runner.analysis.words import plan_words
from runner.report.answer import answers, plan_line
from runner.report.content import how_to_read
from runner.report.markdown import markdown
from runner.report.number import NONE
from runner.report.table import header, main_metric, more_figures, rows

INFER = {"phase": "infer"}
QUESTIONS = ("fastest", "reproducible", "balanced")


def column(summary, name):
    return [row[header(summary).index(name)] for row in rows(summary)]


def test_hand_made_summaries_have_the_fields_of_real_ones(tmp_path):
    real = summarise(four_modes(tmp_path / "study"))
    made = make_summary(("default", {}))
    assert set(made) == set(real)
    assert set(made["cells"][0]) == set(real["cells"][0])
    assert set(SPEED) == set(real["cells"][0]["speed"])
    assert set(SPEED["ratio_to_baseline"]) == set(real["cells"][0]["speed"]["ratio_to_baseline"])
    assert set(REPRODUCIBILITY) == set(real["cells"][0]["reproducibility"])


def test_a_usual_study_has_the_usual_columns():
    assert header(make_summary(("default", {}))) == [
        "mode",
        "trials",
        "step ms",
        "step time / default's",
        "tuning s",
        "peak memory",
        "accuracy",
        "distinct weights",
        "repeats?",
    ]


def test_answers_are_told_as_latency_and_outputs():
    speed = {"p99_ms": 44.4, "samples_per_s": 1700.0}
    summary = make_summary(("default", speed), ("benchmark", speed), settings=INFER)
    assert header(summary)[2:6] == ["latency ms", "p99 ms", "samples/s", "latency / default's"]
    assert column(summary, "p99 ms") == ["44.4", "44.4"]
    assert column(summary, "distinct outputs") == ["1 of 5", "1 of 5"]
    assert "for one process that answers 10,000 batches (plan.steps, plan.runs):" in answers(summary)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("differs", "outputs differ, 3 different of 5"),
        ("loss-only", "outputs bitwise equal, the logged loss differs (outputs equal in 5 of 5)"),
        ("metric-only", "outputs bitwise equal, evaluation metrics differ (outputs equal in 5 of 5)"),
        ("bitwise", "bitwise, 5 of 5"),
    ],
)
def test_no_verdict_over_outputs_speaks_of_weights(verdict, words):
    summary = make_summary(("default", {}), settings=INFER)
    summary["cells"][0]["reproducibility"] |= {"verdict": verdict, "unique_weights": 3}
    assert column(summary, "repeats?") == [words]
    assert "weights" not in markdown(summary)
    assert "training" not in markdown(summary)


def test_real_records_of_answers_speak_of_outputs(tmp_path):
    cells = [(make_cell(**INFER), Plant(weights_step=3, loss_step=3)), (make_cell("benchmark", **INFER), Plant())]
    text = markdown(summarise(make_study(tmp_path / "study", cells)))
    assert "outputs differ, 5 different of 5" in text
    assert "outputs equal after step 2, differ after step 4" in text
    assert "weights differ" not in text and "weights equal" not in text


def test_both_phases_in_one_study_keep_their_columns():
    train, infer = make_summary(("default", {})), make_summary(("default", {"p99_ms": 44.4}), settings=INFER)
    summary = {**train, "cells": [*train["cells"], *infer["cells"]]}
    assert column(summary, "step ms") == ["40.00 (sd 0.10) [39.90, 40.10]", NONE]
    assert column(summary, "latency ms") == [NONE, "40.00 (sd 0.10) [39.90, 40.10]"]
    assert column(summary, "distinct weights") == ["1 of 5", NONE]
    told = " ".join(how_to_read(summary).split())
    assert '"3 of 5" distinct weights are three' in told and '"3 of 5" distinct outputs are three' in told


PLANS = [{"step_ms": 12.1, "trials": 3, "ratio": None}, {"step_ms": 14.5, "trials": 2, "ratio": None}]


@pytest.mark.parametrize(
    ("speed", "device", "terms"),
    [
        ({}, "cuda", set()),
        ({"plans": PLANS}, "cuda", {"A plan is"}),
        ({"groups": PLANS}, "cuda", set()),
        ({"cold_trials": 1, "cold_first_step_ms": 13600.0}, "cuda", {"A cold first step"}),
        ({"ratio_to_baseline": SPEED["ratio_to_baseline"] | {"verdict": "inert"}}, "cpu", {"Inert:"}),
    ],
)
def test_terms_are_explained_where_they_occur(speed, device, terms):
    summary = make_summary(("benchmark", speed))
    summary["environments"][0]["device"] = device
    text = " ".join(markdown(summary).split())
    assert {term for term in ("A plan is", "A cold first step", "Inert:") if term in text} == terms


def test_more_figures_drop_what_is_empty_for_all_cells():
    speed = {"compile_s": 12.3, "energy_j_per_sample": 0.0123, "new_shape_ms": 1900.0, "evaluate_samples_per_s": 9e4}
    lines = more_figures(make_summary(("default", {}), ("benchmark", speed)))
    assert lines == [
        [
            *("mode", "first step ms", "new size ms", "wait ms", "enqueue ms", "lag ms", "samples/s"),
            *("evaluation samples/s", "compile s", "J/sample", "reserved memory", "largest / smallest step"),
        ],
        ["default (F,F)", "500", NONE, "0.100", "12.0", "0.250", "6400", NONE, NONE, NONE, "2.50 GB", "1.01"],
        [
            *("benchmark (F,T)", "500", "1900", "0.100", "12.0", "0.250", "6400", "90000", "12.3", "0.0123"),
            *("2.50 GB", "1.01"),
        ],
    ]


def test_a_users_own_metric_is_among_the_more_figures() -> None:
    summary = make_summary(("default", {}))
    shown = main_metric(summary)
    assert shown
    summary["cells"][0]["metrics"]["top3"] = summary["cells"][0]["metrics"][shown]
    names, row = more_figures(summary)
    assert row[names.index("top3")] == rows(summary)[0][header(summary).index(shown)]
    assert shown not in names


@pytest.mark.parametrize(("new_shape_ms", "text"), [(-3.2, "0"), (0.0, "0"), (3.2, "3.20")])
def test_a_new_size_costs_nothing_at_least(new_shape_ms, text):
    names, row = more_figures(make_summary(("default", {"new_shape_ms": new_shape_ms})))
    assert row[names.index("new size ms")] == text


def test_without_any_further_figure_there_is_no_second_table():
    none = {name: None for name in SPEED if name not in ("left_out", "plans", "groups", "ratio_to_baseline")}
    summary = make_summary(("default", {**none, "power_capped": 0, "crowded": 0, "cold_trials": 0, "cold_by_time": 0}))
    assert more_figures(summary) == []
    assert "More figures" not in markdown(summary)


def test_plans_in_words():
    assert plan_words(10_000, 1, "train") == "one training of 10,000 steps"
    assert plan_words(300, 500, "train") == "500 trainings of 300 steps"
    assert plan_words(1, 1, "infer") == "one process that answers 1 batch"
    assert plan_words(10_000, 2, "infer") == "2 processes that answer 10,000 batches"


@pytest.mark.parametrize(
    ("runs", "settings", "words"),
    [
        (1, {}, "for one training of 10,000 steps (plan.steps, plan.runs):"),
        (200, {}, "for 200 trainings of 10,000 steps (plan.steps, plan.runs):"),
        (2, INFER, "for 2 processes that answer 10,000 batches (plan.steps, plan.runs):"),
    ],
)
def test_answers_say_what_they_are_for(runs, settings, words):
    summary = make_summary(("default", {}), settings=settings)
    summary["plan"]["runs"] = runs
    assert plan_line(summary) == words
    assert answers(summary) == [
        words,
        "fastest: undecided: planted first",
        "reproducible: undecided: planted",
        "balanced: undecided: planted",
    ]


def test_one_answer_to_a_question_is_no_reason_to_be_silent():
    summary = make_summary(("default", {}))
    answer = {
        "cell": "c",
        "label": "default (F,F)",
        "why": "planted",
        "expected_s": 400.0,
        "cost": 1.2,
        "energy_j": None,
    }
    summary["recommendations"][0] |= dict.fromkeys(QUESTIONS, answer)
    assert answers(summary) == [f"{name}: default (F,F) (planted)" for name in QUESTIONS]
    summary["recommendations"][0]["balanced"] = {"undecided": "planted"}  # the others say what they are for
    assert answers(summary)[0] == "fastest: default (F,F) (planted)"


def test_no_ranking_needs_no_plan():
    summary = make_summary(("default", {}))
    summary["recommendations"][0] |= {name: {"undecided": "inert"} for name in QUESTIONS}
    assert answers(summary) == ["no ranking: inert"]
