"""Notes: what a reader must know before using the figures, and nothing where there is nothing to say."""

import pytest
from summaries import FIGURE, make_summary

from runner.report.markdown import markdown
from runner.report.notes import notes
from runner.report.table import header, rows
from runner.report.words import bound_words, left_out_words

PLANS = [
    {"step_ms": 12.1, "trials": 6, "ratio": 0.85},
    {"step_ms": 14.5, "trials": 4, "ratio": 1.019},
]


def notes_of(speed, **changes):
    """The notes of one cell that differs in its speed and in other fields of its summary."""
    summary = make_summary(("benchmark", speed))
    summary["cells"][0] |= changes
    return [note.removeprefix("benchmark (F,T): ") for note in notes(summary)]


def test_a_usual_cell_needs_no_note():
    assert notes_of({}) == []


def test_drawn_plans_stand_in_the_place_of_a_mean():
    summary = make_summary(("benchmark", {"plans": PLANS, "spread": 1.198}))
    (row,) = rows(summary)
    assert row[header(summary).index("step ms")] == "draws 2 plans: 12.1 ms (6 of 10), 14.5 ms (4 of 10)"
    assert row[header(summary).index("step time / default's")].startswith("over all plans 1.250 [")
    assert [note.removeprefix("benchmark (F,T): ") for note in notes(summary)] == [
        "which of 2 plans a process draws is chance: 12.1 ms in 6 of 10, 0.850 of the default's; "
        "14.5 ms in 4 of 10, 1.019 of the default's",
        "the slowest trial's step takes 1.20 times the fastest's",
    ]


def test_plans_without_a_baseline_have_no_ratio():
    (note, *_) = notes_of({"plans": [plan | {"ratio": None} for plan in PLANS]})
    assert note.endswith("is chance: 12.1 ms in 6 of 10; 14.5 ms in 4 of 10")


def test_groups_of_a_cell_that_does_not_tune_are_a_note_and_no_plans():
    summary = make_summary(("default", {"groups": PLANS}))
    (row,) = rows(summary)
    assert row[header(summary).index("step ms")] == "40.00 (sd 0.10) [39.90, 40.10]"
    assert "over all plans" not in row[header(summary).index("step time / default's")]
    assert notes(summary) == [
        "default (F,F): the trials' step times fall into 2 groups: 12.1 ms (6 of 10), 14.5 ms (4 of 10)"
    ]


@pytest.mark.parametrize(("spread", "count"), [(None, 0), (1.05, 0), (1.051, 1)])
def test_a_spread_is_told_above_one_in_twenty(spread, count):
    assert len(notes_of({"spread": spread})) == count


def test_what_only_a_device_can_show_is_not_told_without_cuda():
    summary = make_summary(("benchmark", {"plans": PLANS, "spread": 1.3, "host_bound": True}))
    summary["environments"][0]["device"] = "cpu"
    assert notes(summary) == [
        "the flags cannot act here, no CUDA in use: differences between modes are noise, none is ranked"
    ]


@pytest.mark.parametrize(("count", "often"), [(1, "once"), (12, "12 times")])
def test_operations_that_make_the_host_wait_are_told(count, often):
    (note,) = notes_of({"synchronizing": count})
    assert f"the host waits for the device {often} within a step" in note
    assert notes_of({"synchronizing": 0}) == notes_of({"synchronizing": None}) == []


COLD = {"cold_trials": 1, "cold_first_step_ms": 13600.0}


@pytest.mark.parametrize(
    ("speed", "note"),
    [
        (COLD, "the first step of 1 trial was cold (13.6 s, kernels read from disk), not counted as tuning"),
        (
            COLD | {"cold_trials": 3},
            "the first step of 3 trials was cold (13.6 s, kernels read from disk), not counted as tuning",
        ),
        (
            COLD | {"cold_trials": 5, "first_step_cold": True, "autotune_cold": True},
            "the first step of every trial was cold (13.6 s, kernels read from disk), "
            "the tuning figure holds for a cold start",
        ),
        (
            COLD | {"cold_by_time": 1},
            "the first step of 1 trial was probably cold (13.6 s, the first on its host), not counted as tuning",
        ),
        (
            COLD | {"cold_trials": 3, "cold_by_time": 1},
            "the first step of 3 trials was cold (13.6 s, 1 of them only probably), not counted as tuning",
        ),
    ],
)
def test_cold_first_steps_are_told(speed, note):
    assert notes_of(speed) == [note]


def test_speed_left_out_is_named_with_its_reason_and_counted_at_the_top():
    left_out = [{"trial": 3, "why": "2 other processes on the device before its steps"}]
    summary = make_summary(("default", {}), ("benchmark", {"left_out": left_out}))
    text = markdown(summary)
    assert left_out_words(summary) == ["the speed of 1 trial does not count"]
    left_out.append({"trial": 4, "why": "heat"})
    assert left_out_words(summary) == ["the speed of 2 trials does not count"]
    assert "- the speed of 1 trial does not count\n" in text
    section = text.split("## Speed figures left out\n\n")[1].split("\n\n")[0]
    assert section == "- benchmark (F,T), trial 3: 2 other processes on the device before its steps"


def test_trials_left_out_for_one_reason_are_one_line():
    whys = ["heat", "1 other process on the device before its steps", "heat", "heat"]
    left_out = [{"trial": number, "why": why} for number, why in enumerate(whys)]
    text = markdown(make_summary(("default", {"left_out": left_out[:1]}), ("benchmark", {"left_out": left_out})))
    assert text.split("## Speed figures left out\n\n")[1].split("\n\n")[0].splitlines() == [
        "- default (F,F), trial 0: heat",
        "- benchmark (F,T), trials 0, 2, 3: heat",
        "- benchmark (F,T), trial 1: 1 other process on the device before its steps",
    ]


def test_two_equal_of_two_say_nothing_about_a_further_one():
    summary = make_summary(("default", {}))
    summary["cells"][0]["reproducibility"] |= {"trials": 2, "bound_95": 0.95}
    assert bound_words(summary["cells"][0]) == "2 processes from 1 interpreter"


def test_too_few_steps_for_a_99th_percentile_are_told_where_there_is_no_column():
    settings, note = {"phase": "infer"}, "a 99th percentile needs 100 steady steps"
    without = make_summary(("default", {}), settings=settings)
    assert "p99 ms" not in header(without) and notes(without) == [note]
    without["environments"][0]["device"] = "cpu"
    assert note in notes(without)
    one = make_summary(("default", {}), ("benchmark", {"p99_ms": 44.4}), settings=settings)
    assert "p99 ms" in header(one) and notes(one) == []
    assert notes(make_summary(("default", {"step_ms": None}), settings=settings))[0] != note


def test_a_cell_whose_speed_never_counts_is_not_told_to_take_more_steps():
    left_out = [{"trial": number, "why": "heat"} for number in range(5)]
    speed = {"step_ms": None, "left_out": left_out, "steps": None}
    assert notes(make_summary(("default", {}), ("benchmark", speed))) == [
        "benchmark (F,T): no trial's speed counts, see below"
    ]
    assert notes_of(speed) == []  # the answer says it, for all cells


@pytest.mark.parametrize(("shapes", "needed"), [(1, 9), (3, 11), (None, 9)])
def test_too_few_steps_say_how_many_would_do(shapes, needed):
    assert notes_of({"step_ms": None, "steps": 4, "shapes": shapes}) == [
        f"too few steps for a steady figure (4 a trial): set train.steps to {needed} or more"
    ]


@pytest.mark.parametrize("on", ["cuda", "cpu"])
def test_a_busy_machine_is_one_line_for_the_study(on):
    summary = make_summary(("default", {"crowded": 2}), ("benchmark", {"crowded": 0}))
    summary["environments"][0]["device"] = on
    assert (
        "the machine was busy before 2 of 10 trials, with a load above 1.5 a core: "
        "their step times hold what else ran there"
    ) in notes(summary)


def test_a_power_limit_is_one_line_for_the_study():
    assert notes(make_summary(("default", {"power_capped": 2}), ("benchmark", {"power_capped": 5}))) == [
        "the power limit held the clock down in 7 of 10 trials, as is usual at full load: they count"
    ]


@pytest.mark.parametrize(
    ("at", "share", "words"),
    [
        ([5], 1 / 3, "this one, at 5 rounds, has one third of it"),
        ([5, 10], 1 / 3, "this one, at 10 rounds, has one third of it"),
        ([10], 2 / 3, "this one, at 10 rounds, has two thirds of it"),
        ([20], 1.0, None),
        ([1], 1 / 3, None),
    ],
)
def test_looks_are_told_if_they_share(at, share, words):
    summary = make_summary(("default", {}), ("benchmark", {})) | {"looks": {"at": at, "share": share}}
    planned = "reports are planned at 5, 10 and 20 rounds and share 5 % of false alarms; "
    assert notes(summary) == ([planned + words] if words else [])


def test_a_study_that_compares_nothing_has_no_looks():
    baseline = {"value": 1.0, "ci95": [1.0, 1.0], "baseline": True}
    summary = make_summary(("default", {"ratio_to_baseline": baseline})) | {"looks": {"at": [5], "share": 1 / 3}}
    assert notes(summary) == []


def test_seeds_and_implementation_have_a_section():
    summary = make_summary(("default", {}))
    summary["noise"] = [
        {"fixed": summary["cells"][0]["cell"], "varied": "x", "metric": "accuracy", "words": "cannot be answered"}
    ]
    assert "## Seeds beside implementation\n\n- default (F,F), accuracy: cannot be answered\n" in markdown(summary)
    assert "Seeds" not in markdown(make_summary(("default", {})))


def modes_noise(words, ratio=None):
    """Two cells beside a default whose accuracy spreads."""
    summary = make_summary(("default", {}), ("benchmark", {}), ("deterministic", {}))
    summary["cells"][0]["metrics"] = {"accuracy": {**FIGURE, "sd": 0.1}}
    line = {"baseline": summary["cells"][0]["cell"], "metric": "accuracy", "ratio": ratio}
    summary["modes_noise"] = [
        line | {"cell": cell["cell"], "words": one} for cell, one in zip(summary["cells"][1:], words, strict=True)
    ]
    return [line for line in markdown(summary).splitlines() if "beside the default's" in line]


def test_spreads_that_cannot_be_compared_are_one_line():
    assert modes_noise(["cannot be answered with 5 trials"] * 2) == [
        "- sd of accuracy beside the default's: cannot be answered with 5 trials"
    ]


def test_spreads_that_are_compared_are_a_line_a_cell():
    assert modes_noise(["told apart: 2.0", "not told apart: 1.1"], ratio=2.0) == [
        "- benchmark (F,T): sd of accuracy beside the default's: told apart: 2.0",
        "- deterministic (T,F): sd of accuracy beside the default's: not told apart: 1.1",
    ]


def test_what_does_not_spread_is_not_compared():
    summary = make_summary(("default", {}), ("benchmark", {}))
    summary["modes_noise"] = [
        {"cell": summary["cells"][1]["cell"], "metric": "accuracy", "ratio": None, "words": "cannot be answered"}
    ]
    assert "beside the default's" not in markdown(summary)
