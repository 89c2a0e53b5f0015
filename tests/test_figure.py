"""Figures over trials: definitions by hand, agreement with scipy, coverage by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runner.analysis.figure import Figure, mean_interval, sd_interval, welch_interval

values = st.lists(st.floats(-5, 5), min_size=2, max_size=12)
levels = st.sampled_from([0.95, 1 - 0.05 / 3, 1 - 0.05 / 7])


def test_figure_by_hand():
    figure = Figure.of([1.0, 2.0, 3.0])
    assert (figure.n, figure.mean, figure.sd, figure.min, figure.max) == (3, 2.0, 1.0, 1.0, 3.0)
    half = 4.302653 / np.sqrt(3)
    assert figure.ci95 == pytest.approx((2 - half, 2 + half), rel=1e-6)


def test_an_interval_ends_where_no_value_can_be():
    upper = pytest.approx(1.5 + 0.5 * stats.t.ppf(0.975, 1))
    assert Figure.of([1.0, 2.0], lower=0.0).ci95 == (0.0, upper)
    assert Figure.of([1.0, 2.0]).ci95 == (pytest.approx(1.5 - 0.5 * stats.t.ppf(0.975, 1)), upper)


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


@given(values, levels)
def test_sd_interval_contains_the_sd_and_widens_with_the_level(sample_values, level):
    low, high = sd_interval(sample_values)
    wide = sd_interval(sample_values, max(level, 0.96))
    assert low <= Figure.of(sample_values).sd <= high
    assert wide[0] <= low
    assert high <= wide[1]


@pytest.mark.parametrize("n", [2, 5, 20])
def test_mean_and_sd_intervals_cover_for_normal_values(n):
    rng, studies = np.random.default_rng(n), 2000
    found = [Figure.of(list(row)) for row in rng.normal(3, 2, (studies, n))]
    bound = 4 * np.sqrt(0.95 * 0.05 / studies)
    assert abs(np.mean([one.ci95[0] <= 3 <= one.ci95[1] for one in found]) - 0.95) < bound
    assert abs(np.mean([one.sd_ci95[0] <= 2 <= one.sd_ci95[1] for one in found]) - 0.95) < bound


@given(values, values, levels)
def test_welch_interval_has_satterthwaites_degrees_of_freedom(first, second, level):
    if min(np.ptp(first), np.ptp(second)) > 1e-3:
        own, other = np.var(first, ddof=1) / len(first), np.var(second, ddof=1) / len(second)
        freedom = (own + other) ** 2 / (own**2 / (len(first) - 1) + other**2 / (len(second) - 1))
        middle, half = np.mean(first) - np.mean(second), stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(own + other)
        assert welch_interval(first, second, level) == pytest.approx((middle - half, middle + half), rel=1e-6, abs=1e-9)
    assert welch_interval(first[:1], second) is None
