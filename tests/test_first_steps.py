"""What start-up and tuning cost: cold first steps apart, new shapes and compiling counted where they belong."""

from dataclasses import replace

import pytest
from factory import CPU, GPU, make_sample

from runner.analysis.first_steps import COLD_READ_BYTES, cold_trials, start_figures

MIB = 2**20


def with_speeds(sample, changes):
    """The sample with these figures of the speed of single trials changed, by number."""
    records = [replace(one, speed=replace(one.speed, **changes.get(one.number, {}))) for one in sample.records]
    return replace(sample, records=records)


def started(sample, *seconds, host=lambda number: "node1"):
    records = [
        replace(one, started=f"2026-12-01T00:00:{second:02}+00:00", environment=GPU | {"host": host(one.number)})
        for one, second in zip(sample.records, seconds, strict=True)
    ]
    return replace(sample, records=records)


def first(sample, first_ms):
    return with_speeds(sample, {number: {"first_step_ms": value} for number, value in enumerate(first_ms)})


def test_a_step_is_cold_by_what_was_read():
    read = [400 * MIB, COLD_READ_BYTES, COLD_READ_BYTES - 1, 0, None]
    sample = with_speeds(
        make_sample("default", [10.0] * 5), {n: {"first_step_read_bytes": value} for n, value in enumerate(read)}
    )
    assert cold_trials(sample.records) == {0, 1}
    figures = start_figures(sample, None)
    assert (figures.cold_trials, figures.cold_by_time) == (2, 0)


@pytest.mark.parametrize(
    ("first_ms", "cold"),
    [
        ([8200.0, 2000.0, 2050.0], {0}),
        ([3100.0, 2000.0, 2050.0], {0}),
        ([3000.0, 2000.0, 2050.0], set()),
        ([2000.0, 8200.0, 2050.0], set()),  # not the first: something else
        ([8200.0, 2000.0], set()),  # which of two is usual?
    ],
)
def test_without_a_counter_only_the_first_of_a_host_can_be_cold_and_has_to_stand_out(first_ms, cold):
    sample = first(make_sample("benchmark", [10.0] * len(first_ms)), first_ms)
    assert cold_trials(sample.records) == cold
    figures = start_figures(sample, None)
    assert figures.cold_by_time == figures.cold_trials == len(cold)


def test_first_means_by_start_and_on_each_host():
    sample = first(make_sample("benchmark", [10.0] * 3), [2000.0, 2100.0, 9000.0])
    assert cold_trials(started(sample, 30, 20, 10).records) == {2}
    six = first(make_sample("benchmark", [10.0] * 6), [8000.0, 9000.0, 2000.0, 2000.0, 2000.0, 2000.0])
    spread = started(six, *range(6), host=lambda number: f"node{number % 2}")
    assert cold_trials(spread.records) == {0, 1}
    assert cold_trials(started(six, *range(6)).records) == set()


def test_a_trial_that_failed_had_read_the_kernels_already():
    sample = first(make_sample("benchmark", [10.0] * 4), [500.0, 8000.0, 2000.0, 2000.0])
    failed = replace(sample.records[0], outcome="failed", speed=None, digests=None)
    assert cold_trials([failed, *sample.records[1:]]) == set()
    assert cold_trials(sample.records[1:]) == {1}


def test_compiling_anew_is_no_cold_start():
    changes = {0: {"first_step_ms": 30_500.0, "compile_s": 30.0}} | {
        number: {"first_step_ms": 2_500.0, "compile_s": 2.0} for number in (1, 2)
    }
    assert cold_trials(with_speeds(make_sample("default", [10.0] * 3), changes).records) == set()


def test_cold_trials_do_not_enter_the_usual_first_step_nor_the_cost_of_tuning():
    cold = {0: {"first_step_read_bytes": 400 * MIB}}
    own = with_speeds(first(make_sample("benchmark", [8.0] * 4), [8200.0, 2100.0, 2000.0, 2200.0]), cold)
    base = first(make_sample("default", [10.0] * 4), [500.0, 500.0, 500.0, 490.0])
    figures = start_figures(own, base)
    assert (figures.first_step_ms, figures.cold_first_step_ms) == (2100.0, 8200.0)
    assert (figures.cold_trials, figures.first_step_cold, figures.autotune_cold) == (1, False, False)
    assert figures.autotune_s == pytest.approx(1.6)
    # The first trial of the study was one of the baseline: its pair goes, not the other mode's first step.
    base = with_speeds(first(base, [6000.0, 500.0, 500.0, 490.0]), cold)
    own = first(make_sample("benchmark", [8.0] * 4), [2500.0, 2100.0, 2000.0, 2200.0])
    figures = start_figures(own, base)
    assert (figures.first_step_ms, figures.cold_trials, figures.cold_first_step_ms) == (2150.0, 0, None)
    assert figures.autotune_s == pytest.approx(1.6)


def test_if_all_were_cold_the_figures_say_so():
    own = make_sample("benchmark", [8.0], first_ms=8200.0, first_step_read_bytes=400 * MIB)
    figures = start_figures(own, make_sample("default", [10.0]))
    assert (figures.first_step_ms, figures.cold_first_step_ms, figures.cold_trials) == (8200.0, 8200.0, 1)
    assert (figures.first_step_cold, figures.autotune_cold) == (True, True)
    assert (figures.autotune_s, figures.autotune_s_ci95) == (pytest.approx(7.7), None)


def test_new_shapes_cost_what_they_take_above_a_steady_step_and_belong_to_tuning():
    own = make_sample("benchmark", [20.0] * 3, first_ms=9000.0, new_shapes_ms=[1900.0, 2100.0, 2060.0])
    base = make_sample("default", [25.0] * 3, first_ms=500.0, new_shapes_ms=[30.0, 40.0, 50.0])
    figures = start_figures(own, base)
    assert figures.new_shape_ms == pytest.approx(2000.0)
    assert figures.new_shapes_s == pytest.approx(6.06)
    assert figures.autotune_s == pytest.approx(8.5 + 6.06 - 0.12)
    assert start_figures(base, None).new_shape_ms == pytest.approx(15.0)


def test_new_shapes_of_cold_trials_are_cold_too():
    own = make_sample("benchmark", [20.0] * 3, new_shapes_ms=[1000.0])
    own = with_speeds(own, {0: {"first_step_read_bytes": 400 * MIB, "new_shapes_ms": [5000.0]}})
    figures = start_figures(own, None)
    assert (figures.new_shape_ms, figures.new_shapes_s) == (980.0, 1.0)


def test_one_shape_has_no_cost_of_a_new_one_and_too_few_steps_have_no_steady_one():
    assert start_figures(make_sample("default", [10.0]), None).new_shapes_s is None
    short = start_figures(make_sample("default", [None, None], new_shapes_ms=[30.0]), None)
    assert (short.new_shape_ms, short.new_shapes_s) == (None, pytest.approx(0.03))


def test_what_compiling_took_is_no_tuning():
    own = make_sample("benchmark", [8.0] * 2, first_ms=33_000.0, compile_s=30.0)
    base = make_sample("default", [10.0] * 2, first_ms=31_500.0, compile_s=31.0)
    figures = start_figures(own, base)
    assert figures.autotune_s == pytest.approx(3.0 - 0.5)
    assert (figures.compile_s, figures.first_step_ms) == (30.0, 33_000.0)


def test_without_cuda_nothing_is_said_about_tuning():
    own, base = make_sample("benchmark", [8.0] * 2, CPU, first_ms=2500.0), make_sample("default", [10.0] * 2, CPU)
    figures = start_figures(own, base)
    assert (figures.autotune_s, figures.autotune_seen, figures.autotune_cold) == (None, False, False)
    assert figures.first_step_ms == 2500.0


def test_a_mode_that_does_not_tune_has_no_cost_of_tuning():
    own, base = make_sample("deterministic", [8.0] * 2, first_ms=2500.0), make_sample("default", [10.0] * 2)
    figures = start_figures(own, base)
    assert (figures.autotune_s, figures.autotune_seen, figures.autotune_cold) == (None, False, False)


def test_without_cuda_no_first_step_is_cold():
    sample = make_sample("default", [10.0] * 3, CPU, first_step_read_bytes=400 * MIB)
    assert cold_trials(sample.records) == set()
    assert cold_trials(first(make_sample("default", [10.0] * 3, CPU), [8200.0, 2000.0, 2050.0]).records) == set()
    assert (start_figures(sample, None).cold_trials, start_figures(sample, None).first_step_cold) == (0, False)


def test_no_trial_no_figure():
    empty = replace(make_sample("default", [10.0]), records=[])
    figures = start_figures(empty, empty)
    assert (figures.first_step_ms, figures.cold_first_step_ms, figures.new_shapes_s) == (None, None, None)
    assert (figures.cold_trials, figures.first_step_cold, figures.autotune_s) == (0, False, None)
