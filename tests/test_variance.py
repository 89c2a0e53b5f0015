"""Disagreement and weight distance: U-statistics and their jackknife."""

import numpy as np
import pytest
from factory import make_series
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis.variance import (
    compare_spread,
    disagreement,
    pairwise,
    unit_weight_distance,
    weight_distance,
)

classes = st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=2, max_size=6)


def predicting(rows):
    return [make_series(predictions=np.array(row)) for row in rows]


def test_disagreement_by_hand():
    found = disagreement(predicting([[0, 1, 2, 3], [0, 1, 2, 2], [1, 1, 2, 2]]))
    assert found.mean == pytest.approx((0.25 + 0.5 + 0.25) / 3)
    assert (found.trials, found.ci95) == (3, (0.0, 1.0))


@given(classes)
def test_churn_does_not_depend_on_what_classes_are_called(rows):
    one, two = disagreement(predicting(rows)), disagreement(predicting((3 - np.array(rows)).tolist()))
    assert one == two


@given(classes, st.randoms(use_true_random=False))
def test_churn_does_not_depend_on_the_order_of_trials(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert disagreement(predicting(rows)).mean == pytest.approx(disagreement(predicting(shuffled)).mean)


@given(classes)
def test_interval_contains_the_point_and_stays_in_range(rows):
    found = disagreement(predicting(rows))
    assert 0 <= found.mean <= 1
    if found.ci95 is not None:
        assert 0 <= found.ci95[0] <= found.mean <= found.ci95[1] <= 1


def test_distance_by_hand():
    sketches = [np.array([0.0, 0.0]), np.array([3.0, 4.0])]
    found = weight_distance([make_series(sketch=sketch) for sketch in sketches])
    assert (found.mean, found.ci95) == (5.0, None)


def test_too_few_trials_give_none():
    for few in ([], [make_series()]):
        assert disagreement(few) is None
        assert weight_distance(few) is None


def test_values_have_no_disagreement():
    assert disagreement([make_series(predictions=np.array([0.5])), make_series(predictions=np.array([0.6]))]) is None


def test_trials_that_all_look_alike_give_no_interval():
    found = disagreement([make_series() for _ in range(5)])
    assert (found.mean, found.ci95) == (0.0, None)


def test_jackknife_equals_its_definition():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    left_out = [pairwise(np.delete(np.delete(distances, i, 0), i, 1)).mean for i in range(6)]
    error = np.sqrt(5 / 6 * np.square(left_out - np.mean(left_out)).sum())
    found = pairwise(distances)
    assert found.ci95[1] - found.mean == pytest.approx(2.570582 * error, rel=1e-5)


def test_jackknife_interval_covers():
    rng = np.random.default_rng(2)
    expected, hits = 0.2 * 0.8 * 2, 0
    for _ in range(300):
        # Trials of unequal quality: each flips a share of the answers, so pairs that share a trial are dependent.
        rows = (rng.random((10, 400)) < rng.beta(20, 80, size=(10, 1))).astype(int)
        low, high = disagreement(predicting(rows.tolist())).ci95
        hits += low <= expected <= high
    assert 0.90 < hits / 300 <= 1.0


def test_unit_distance_by_hand():
    sketches = [np.array([2.0, 0.0]), np.array([0.0, 5.0]), np.array([30.0, 0.0])]
    found = unit_weight_distance([make_series(sketch=sketch) for sketch in sketches])
    assert found.mean == pytest.approx(2 * np.sqrt(2) / 3)


@given(st.floats(0.01, 100))
def test_unit_distance_does_not_depend_on_the_length_of_the_weights(scale):
    sketches = np.random.default_rng(0).normal(size=(4, 16))
    one, two = (
        unit_weight_distance([make_series(sketch=row) for row in rows]) for rows in (sketches, scale * sketches)
    )
    assert one.mean == pytest.approx(two.mean)
    assert one.ci95 == pytest.approx(two.ci95)


def test_unit_distance_estimates_that_of_the_weights():
    """Of weights that are never seen whole: their signed sums stand for them."""
    rng = np.random.default_rng(1)
    start = rng.normal(size=200_000)
    weights = [start + rng.normal(0, 0.1, start.size) for _ in range(3)]
    signs, place = rng.choice([-1.0, 1.0], start.size), rng.integers(0, 4096, start.size)
    sketches = [np.bincount(place, signs * one, 4096).astype(np.float32) for one in weights]
    units = [one / np.linalg.norm(one) for one in weights]
    expected = np.mean([np.linalg.norm(units[i] - units[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    assert unit_weight_distance([make_series(sketch=one) for one in sketches]).mean == pytest.approx(expected, rel=0.04)


def test_weights_without_length_or_end_have_no_distance():
    zeros, endless = np.zeros(4), np.array([np.inf, 0.0, 0.0, 0.0])
    assert unit_weight_distance([make_series(sketch=zeros), make_series(sketch=np.ones(4))]) is None
    assert weight_distance([make_series(sketch=endless), make_series(sketch=np.ones(4))]) is None
    assert unit_weight_distance([]) is None


def test_spread_by_hand():
    # 20 values of sd 2 and 20 of sd 1; the 97.5 % point of F with 19 and 19 degrees of freedom is 2.526 in tables.
    one = np.array([-1.0, 1.0] * 10) * np.sqrt(19 / 20)
    found = compare_spread(2 * one, one)
    assert found.ratio == pytest.approx(2.0)
    assert found.ci95 == pytest.approx((2 / np.sqrt(2.526), 2 * np.sqrt(2.526)), rel=1e-3)
    assert (found.trials, found.apart) == (20, True)


@pytest.mark.parametrize(("n", "words"), [(0, "0 trials"), (1, "1 trial"), (19, "19 trials")])
def test_few_trials_compare_no_spread(n, words):
    found = compare_spread(list(range(n)), list(range(40)))
    assert (found.ratio, found.ci95, found.p, found.apart) == (None, None, None, False)
    assert found.words == f"cannot be answered with {words} (20 needed)"


def test_values_that_are_all_equal_have_no_ratio():
    alike, apart = [1.0] * 20, list(map(float, range(20)))
    assert compare_spread(alike, alike).words == "all values are equal on both sides"
    assert compare_spread(alike, apart).ratio is None
    assert compare_spread(apart, alike).words == "all values of the second are equal, those of the other are not"


draws = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(3, size=n),
    "skewed": lambda rng, n: rng.lognormal(0, 0.5, size=n),
}


@pytest.mark.parametrize("kind", draws)
def test_equal_spreads_are_told_apart_in_at_most_five_percent(kind):
    rng, studies = np.random.default_rng(7), 600
    alarms = sum(compare_spread(draws[kind](rng, 20), draws[kind](rng, 20)).apart for _ in range(studies))
    assert alarms / studies < 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


def test_spread_interval_covers_for_normal_values():
    rng, studies = np.random.default_rng(8), 600
    found = [compare_spread(rng.normal(0, 3, 25), rng.normal(0, 2, 20)).ci95 for _ in range(studies)]
    covered = np.mean([low <= 1.5 <= high for low, high in found])
    assert abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 / studies)


def test_twice_the_spread_is_mostly_found():
    rng = np.random.default_rng(9)
    assert np.mean([compare_spread(rng.normal(0, 2, 20), rng.normal(0, 1, 20)).apart for _ in range(200)]) > 0.6


def test_of_very_many_trials_evenly_spread_ones_are_compared():
    sketches = [np.array([float(number)]) for number in range(401)]
    found = weight_distance([make_series(sketch=sketch) for sketch in sketches])
    assert found.trials == 134  # every third
    assert found.mean == pytest.approx(3 * (134 + 1) / 3)  # of 0, 1, ..., n - 1 two lie (n + 1) / 3 apart on average
