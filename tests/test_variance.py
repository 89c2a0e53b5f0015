"""Disagreement and weight distance: U-statistics and their jackknife."""

import numpy as np
import pytest
from factory import make_series
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis.variance import disagreement, pairwise, weight_distance

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
