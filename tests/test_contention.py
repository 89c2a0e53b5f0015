"""Which trials' speed does not count: by what was seen of the device, never by the value."""

from dataclasses import replace

import pytest
from factory import GPU, Plant, make_cell, make_record, make_sample, make_study
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis.contention import crowded, doubts, power_capped, timed
from runner.analysis.looks import Looks
from runner.analysis.ratio import compare, pairs_of
from runner.analysis.speed import speed_figures
from runner.analysis.summary import summarise
from runner.layout import record_file

QUIET = {"throttle_reasons": "", "other_processes": 0, "thermal_violation_ns": 5_000_000_000}


def seen(before=(), after=(), steps_s=10.0):
    """A record whose device showed these covariates besides quiet ones."""
    record = make_record(make_cell())
    covariates = {"before": QUIET | dict(before), "after": QUIET | dict(after)}
    return replace(record, covariates=covariates, speed=replace(record.speed, steps_s=steps_s))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "reason", ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"]
)
def test_heat_and_hardware_count_before_and_after(moment, reason):
    record = seen(**{moment: {"throttle_reasons": f"sync_boost,{reason}"}})
    assert doubts(record) == [f"the clock was throttled by heat or hardware ({reason})"]
    assert timed([record]) == []


@pytest.mark.parametrize("reasons", ["", "sw_power_cap", "sw_power_cap,sync_boost", "applications_clocks_setting"])
def test_nothing_else_that_holds_a_clock_down_does(reasons):
    record = seen(after={"throttle_reasons": reasons, "power_violation_ns": 9_000_000_000})
    assert doubts(record) == []
    assert power_capped(record) is ("sw_power_cap" in reasons)


@pytest.mark.parametrize(
    ("before", "busy"),
    [
        ({"load_1min": 3.01, "cores": 2}, True),
        ({"load_1min": 3.0, "cores": 2}, False),
        ({"load_1min": 3.01, "cores": 16}, False),
        ({"load_1min": 3.01}, False),  # a record of before the cores were kept
        ({"load_1min": None, "cores": None}, False),
    ],
)
def test_a_busy_host_is_one_with_half_as_much_again_to_run_as_it_has_cores_and_counts(before, busy):
    record = seen(before=before, after={"load_1min": 99.0, "cores": 2})
    assert crowded(record) is busy
    assert timed([record]) == [record]


@pytest.mark.parametrize(("lost_ms", "counts"), [(0, True), (99, True), (101, False)])
def test_time_lost_to_heat_counts_from_a_hundredth_of_the_steps(lost_ms, counts):
    record = seen(after={"thermal_violation_ns": QUIET["thermal_violation_ns"] + lost_ms * 1_000_000})
    assert (timed([record]) == [record]) is counts
    assert counts or doubts(record) == ["heat held the clock down for 0.101 s of 10 s of steps"]


def test_other_processes_are_told_with_their_moment_and_number():
    record = seen(before={"other_processes": 2}, after={"other_processes": 1})
    assert doubts(record) == [
        "2 other processes on the device before its steps",
        "1 other process on the device after its steps",
    ]


def test_sharing_that_was_allowed_counts_only_if_others_were_there():
    shared = GPU | {"exclusive": False}
    assert timed([replace(seen(), environment=shared)])
    assert not timed([replace(seen(before={"other_processes": 1}), environment=shared)])


@pytest.mark.parametrize("covariates", [{}, {"before": {}, "after": {}}, {"before": {"thermal_violation_ns": 5}}])
def test_what_could_not_be_read_proves_nothing(covariates):
    record = replace(seen(after={"thermal_violation_ns": 10**12}), covariates=covariates)
    assert doubts(record) == []
    unknown = replace(record, covariates={"before": QUIET, "after": QUIET | {"thermal_violation_ns": 10**12}})
    assert doubts(replace(unknown, speed=replace(unknown.speed, steps_s=None))) == []


@given(st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_no_value_of_speed_leaves_a_trial_out(step_ms, first_step_ms):
    record = seen()
    slow = replace(record, speed=replace(record.speed, step_ms=step_ms, first_step_ms=first_step_ms))
    assert timed([slow]) == [slow]


def test_trials_that_did_not_finish_have_no_speed_that_counts():
    assert (
        timed([make_record(make_cell(), 0, Plant(outcomes={0: outcome})) for outcome in ("failed", "diverged")]) == []
    )


def hot(sample, number):
    covariates = {"before": QUIET, "after": QUIET | {"throttle_reasons": "hw_thermal_slowdown"}}
    records = [replace(one, covariates=covariates) if one.number == number else one for one in sample.records]
    return replace(sample, records=records)


def test_a_trial_left_out_takes_its_pair_with_it_and_is_named():
    own, base = make_sample("benchmark", [8.0, 8.0, 80.0, 8.0]), make_sample("default", [10.0] * 4)
    assert [pair[0].number for pair in pairs_of(hot(own, 2), base)] == [0, 1, 3]
    assert [pair[0].number for pair in pairs_of(own, hot(base, 1))] == [0, 2, 3]
    figures = speed_figures(hot(own, 2), base, compare(hot(own, 2), base, 1, 0.02, Looks((20,))))
    assert (figures.step_ms.n, figures.step_ms.mean, figures.spread) == (3, 8.0, 1.0)
    assert figures.ratio_to_baseline.value == pytest.approx(0.8)
    assert [(one.trial, one.why) for one in figures.left_out] == [
        (2, "the clock was throttled by heat or hardware (hw_thermal_slowdown)")
    ]


def test_reproducibility_is_judged_over_all_and_speed_over_none_if_none_counts(tmp_path):
    study = make_study(tmp_path / "study", [(make_cell(), Plant(weights_step=1, loss_step=1))], rounds=3)
    for record in study.records():
        covariates = {"before": QUIET | {"other_processes": 1, "throttle_reasons": "sw_power_cap"}}
        replace(record, covariates=covariates).write(record_file(study.trial_folder(record.cell, record.number)))
    (cell,) = summarise(study)["cells"]
    assert (cell["n"], cell["reproducibility"]["trials"], cell["reproducibility"]["unique_weights"]) == (3, 3, 3)
    speed = cell["speed"]
    assert [one["trial"] for one in speed["left_out"]] == [0, 1, 2]
    figures = ("step_ms", "samples_per_s", "first_step_ms", "spread", "steps", "shapes")
    assert [speed[name] for name in figures] == [None] * 6
    assert (speed["power_capped"], speed["plans"]) == (0, [])
    assert speed["peak_memory_bytes"] == 2_300_000_000
