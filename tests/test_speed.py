"""Figures, ratios and speed: definitions by hand, agreement with scipy, coverage by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from factory import CPU, GPU, Plant, make_cell, make_record
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.analysis.environment import Environment
from runner.analysis.figure import Figure, mean_interval, sd_interval, welch_interval
from runner.analysis.ratio import MOST_ROUNDS, compare, decide, paired_ratio, pairs_of, rounds_to_settle, self_ratio
from runner.analysis.sample import Sample, baselines
from runner.analysis.speed import speed_figures

values = st.lists(st.floats(-5, 5), min_size=2, max_size=12)
levels = st.sampled_from([0.95, 1 - 0.05 / 3, 1 - 0.05 / 7])


def sample(mode, step_ms, environment=GPU, first_ms=500.0, **speed):
    cell, records = make_cell(mode), []
    for number, value in enumerate(step_ms):
        record = make_record(cell, number, environment=environment)
        times = replace(record.speed, step_ms=value, first_step_ms=first_ms, **speed)
        records.append(replace(record, speed=times))
    return Sample(cell, mode, Environment.of(records[0]), records, baselines([cell])[cell.id])


def test_figure_by_hand():
    figure = Figure.of([1.0, 2.0, 3.0])
    assert (figure.n, figure.mean, figure.sd, figure.min, figure.max) == (3, 2.0, 1.0, 1.0, 3.0)
    half = 4.302653 / np.sqrt(3)
    assert figure.ci95 == pytest.approx((2 - half, 2 + half), rel=1e-6)


def test_figure_of_one_has_no_spread_and_a_hole_no_mean():
    assert Figure.of([2.0]) == Figure(1, 2.0, min=2.0, max=2.0)
    assert Figure.of([2.0, None, 3.0]) == Figure(n=2)
    assert Figure.of([]) == Figure(n=0)


def test_sd_interval_at_five_spans_what_the_design_says():
    low, high = sd_interval([-1.0, 1.0, 0.0, 2.0**0.5, -(2.0**0.5)])
    sd = np.std([-1.0, 1.0, 0.0, 2.0**0.5, -(2.0**0.5)], ddof=1)
    assert (low / sd, high / sd) == pytest.approx((0.599, 2.874), abs=1e-3)


@given(values, levels)
def test_mean_interval_is_scipys_at_that_level(sample_values, level):
    found = mean_interval(sample_values, level)
    if stats.sem(sample_values) > 1e-9:
        expected = stats.ttest_1samp(sample_values, 0).confidence_interval(level)
        assert found == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


def test_constant_values_give_an_interval_without_width():
    assert mean_interval([1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert welch_interval([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0)


@given(values, st.floats(0.001, 1000))
def test_ratio_is_invariant_under_a_common_scale(logs, scale):
    steps = np.exp(np.array(logs) / 10)
    one = compare(sample("benchmark", 3 * steps), sample("default", steps**2), 3)
    two = compare(sample("benchmark", 3 * steps * scale), sample("default", steps**2 * scale), 3)
    assert one.value == pytest.approx(two.value)
    assert one.ci95 == pytest.approx(two.ci95)


@given(st.tuples(st.floats(0.5, 1.5), st.floats(0, 0.5)), st.floats(0.001, 0.5), st.floats(0, 0.5))
def test_verdict_is_monotone_in_the_margin(low_width, margin, more):
    interval = low_width[0], low_width[0] + low_width[1]
    if decide(interval, margin) == "equivalent":
        assert decide(interval, margin + more) == "equivalent"
    else:
        assert decide(interval, margin + more) in ("equivalent", decide(interval, margin))


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.7, 0.8), "faster"),
        ((1.1, 1.2), "slower"),
        ((0.985, 0.995), "equivalent"),
        ((0.97, 1.01), "undecided"),
        ((0.97, 0.99), "faster"),
        (None, "undecided"),
    ],
)
def test_verdicts(interval, verdict):
    assert decide(interval, 0.02) == verdict
    assert decide(interval, 0.02, inert=True) == "inert"


def test_level_is_shared_by_the_comparisons():
    ratio = compare(sample("benchmark", [8, 8.1, 7.9]), sample("default", [10, 10, 10]), 3)
    logs = np.log([0.8, 0.81, 0.79])
    expected = np.exp(stats.ttest_1samp(logs, 0).confidence_interval(1 - 0.05 / 3))
    assert ratio.level == pytest.approx(1 - 0.05 / 3)
    assert ratio.ci95 == pytest.approx(tuple(expected))
    assert (ratio.verdict, ratio.pairs, ratio.paired) == ("faster", 3, True)


def test_pairs_need_the_same_round_host_and_gpu():
    own, other = sample("benchmark", [8, 8, 8]), sample("default", [10, 10, 10])
    moved = [replace(record, environment=GPU | {"gpu_uuid": f"GPU-{record.number}"}) for record in own.records]
    assert [pair[0].number for pair in pairs_of(replace(own, records=moved), other)] == [1]
    assert len(pairs_of(own, other)) == 3


def test_unpaired_trials_are_said_to_be_so():
    elsewhere = sample("benchmark", [8, 8.1, 7.9], GPU | {"gpu_uuid": "GPU-2"})
    ratio = compare(elsewhere, sample("default", [10, 10.1, 9.9]), 1)
    expected = welch_interval(np.log([8, 8.1, 7.9]), np.log([10, 10.1, 9.9]))
    assert (ratio.paired, ratio.why) == (False, "no round has both on the same GPU and host")
    assert ratio.ci95 == pytest.approx(tuple(np.exp(expected)))


def test_a_single_pair_among_several_trials_is_not_all_that_is_used():
    own, base = sample("benchmark", [8, 8.1, 7.9]), sample("default", [10, 10.1, 9.9])
    moved = [replace(one, environment=GPU | {"gpu_uuid": "GPU-2"}) for one in own.records[1:]]
    ratio = compare(replace(own, records=[own.records[0], *moved]), base, 1)
    expected = welch_interval(np.log([8, 8.1, 7.9]), np.log([10, 10.1, 9.9]))
    assert (ratio.paired, ratio.why) == (False, "only one round has both on the same GPU and host")
    assert ratio.ci95 == pytest.approx(tuple(np.exp(expected)))
    assert ratio.verdict == "faster"


def test_one_pair_decides_nothing():
    ratio = compare(sample("benchmark", [8.0]), sample("default", [10.0]), 1)
    assert (ratio.value, ratio.ci95, ratio.verdict) == (pytest.approx(0.8), None, "undecided")
    assert (ratio.paired, ratio.rounds, ratio.why) == (True, None, "one pair gives no interval")


def test_inert_prints_the_ratio_all_the_same():
    ratio = compare(sample("benchmark", [8.0, 8.1], CPU), sample("default", [10.0, 10.0], CPU), 1)
    assert ratio.verdict == "inert"
    assert ratio.value == pytest.approx(0.805, abs=1e-3)


def test_missing_baseline_gives_no_ratio():
    ratio = compare(sample("benchmark", [8.0, 8.1]), None, 1)
    assert (ratio.value, ratio.verdict) == (None, "undecided")


@settings(max_examples=30)
@given(st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=8))
def test_rounds_to_settle_settle(logs):
    if np.std(logs) < 1e-4:
        return
    low, high = rounds_to_settle(logs, 0.95, 0.02)
    assert low is None or len(logs) < low <= MOST_ROUNDS
    assert high is None or (low is not None and low <= high)
    if high is not None:
        mean, sd = np.mean(logs), sd_interval(logs)[1]
        half = stats.t.ppf(0.975, high - 1) * sd / np.sqrt(high)
        assert decide(tuple(np.exp([mean - half, mean + half])), 0.02) != "undecided"


def test_rounds_beyond_the_cap_are_said():
    assert rounds_to_settle([-3.0, 3.001], 0.95, 0.02)[1] is None


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_paired_interval_covers(rounds):
    rng = np.random.default_rng(rounds)
    logs = rng.normal(np.log(0.9), 0.02, (400, rounds))
    found = [paired_ratio(list(row), 0.95, 0.02).ci95 for row in logs]
    covered = np.mean([low <= 0.9 <= high for low, high in found])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_false_alarms_stay_within_five_percent_over_three_comparisons():
    rng = np.random.default_rng(1)
    base, others = rng.normal(0, 0.02, (400, 5, 1)), rng.normal(0, 0.02, (400, 5, 3))
    logs = others - base
    verdicts = [[paired_ratio(list(one), 1 - 0.05 / 3, 0.0).verdict for one in study.T] for study in logs]
    alarms = np.mean([any(verdict != "undecided" for verdict in study) for study in verdicts])
    assert alarms < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def test_tuning_cost_and_break_even_by_hand():
    own, base = sample("benchmark", [8.0, 8.0], first_ms=2500.0), sample("default", [10.0, 10.0], first_ms=500.0)
    figures = speed_figures(own, base, compare(own, base, 1))
    assert (figures.autotune_s, figures.autotune_seen) == (pytest.approx(2.0), True)
    assert figures.break_even_steps == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("excess_ms", "seen"),
    [
        ([200.0, 220.0, 210.0], True),
        ([49.0, 48.0, 49.5], False),
        ([-300.0, 200.0, 400.0], False),
        ([-200.0, -220.0, -210.0], False),
        ([200.0], True),
    ],
)
def test_a_cost_of_tuning_is_seen_if_it_is_large_enough_and_told_from_none(excess_ms, seen):
    own, base = sample("benchmark", [8.0] * len(excess_ms)), sample("default", [10.0] * len(excess_ms))
    speeds = [replace(one.speed, first_step_ms=500.0 + more) for one, more in zip(own.records, excess_ms, strict=True)]
    own = replace(own, records=[replace(one, speed=speed) for one, speed in zip(own.records, speeds, strict=True)])
    figures = speed_figures(own, base, compare(own, base, 1))
    assert figures.autotune_seen is seen
    assert figures.autotune_s == pytest.approx(np.median(excess_ms) / 1000)
    expected = mean_interval(np.array(excess_ms) / 1000)
    assert figures.autotune_s_ci95 == (expected and pytest.approx(expected))


def test_no_gain_never_breaks_even_and_the_baseline_has_no_tuning():
    own, base = sample("deterministic", [12.0, 12.1]), sample("default", [10.0, 10.0])
    assert speed_figures(own, base, compare(own, base, 1)).break_even_steps == "never"
    itself = speed_figures(base, base, self_ratio(base, 0.95))
    assert (itself.autotune_s, itself.autotune_seen, itself.break_even_steps) == (None, False, None)
    assert itself.ratio_to_baseline.value == 1.0


def test_host_bound_and_memory():
    busy = sample("default", [10.0, 10.0], enqueue_ms=9.6)
    figures = speed_figures(busy, busy, self_ratio(busy, 0.95))
    assert figures.host_bound is True
    assert (figures.peak_memory_kind, figures.peak_memory_bytes) == ("allocated", 2_300_000_000)
    cpu = sample("default", [10.0, 10.0], CPU, enqueue_ms=9.6)
    assert speed_figures(cpu, cpu, self_ratio(cpu, 0.95)).host_bound is None


def test_too_few_steps_give_no_figure():
    short = sample("default", [None, None])
    figures = speed_figures(short, short, self_ratio(short, 0.95))
    assert figures.step_ms is None
    assert (figures.ratio_to_baseline.value, figures.ratio_to_baseline.why) == (None, "no steady step time")
    assert figures.first_step_ms == 500.0


def test_planted_noise_reaches_the_record():
    steps = [make_record(make_cell(), n, Plant(ratio=2.0, noise=0.0)).speed.step_ms for n in range(3)]
    assert steps == [80.0] * 3
