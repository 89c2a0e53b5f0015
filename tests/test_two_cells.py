"""How far the trials of two cells are from each other: by hand, by a slow computation, and whether intervals cover."""

import numpy as np
import pytest
from factory import make_series
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.analysis.two_cells import disagreement_between, two_samples
from runner.series import Series

rows = st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=5)


def predicting(predictions: list[list[int]]) -> list[Series]:
    return [make_series(predictions=np.array(row)) for row in predictions]


def test_disagreement_of_two_cells_by_hand() -> None:
    # against 0 1 2 3: one differs in one place of four, the other in three
    found = disagreement_between(predicting([[0, 1, 2, 2], [3, 2, 1, 3]]), predicting([[0, 1, 2, 3]] * 2))
    assert found is not None and found.mean == pytest.approx(0.5)
    # the columns do not vary: t with one degree of freedom, 12.706 in tables, times sqrt(0.125 / 2)
    assert (found.trials, found.ci95) == (2, (0.0, 1.0))


def test_the_interval_is_students_where_one_side_does_not_vary() -> None:
    distances = np.array([[0.1], [0.2], [0.3], [0.4]]).repeat(3, axis=1)
    found, half = two_samples(distances), 3.1824 * np.std([0.1, 0.2, 0.3, 0.4], ddof=1) / 2
    assert found.ci95 == pytest.approx((0.25 - half, 0.25 + half), rel=1e-4)


@settings(deadline=None)
@given(rows, rows)
def test_it_is_the_mean_over_all_pairs(first: list[list[int]], second: list[list[int]]) -> None:
    found = disagreement_between(predicting(first), predicting(second))
    each = [sum(a != b for a, b in zip(one, other, strict=True)) / 6 for one in first for other in second]
    assert found is not None and found.mean == pytest.approx(sum(each) / len(each))


def test_equal_cells_do_not_disagree_exactly() -> None:
    found = disagreement_between(predicting([[1, 2]] * 3), predicting([[1, 2]] * 2))
    assert found is not None and (found.mean, found.ci95) == (0.0, (0.0, 0.0))


def test_what_cannot_be_compared_is_none() -> None:
    some = predicting([[1, 2, 3]])
    assert disagreement_between(some, []) is None
    assert disagreement_between(some, predicting([[1, 2]])) is None
    assert disagreement_between(some, [make_series(predictions=np.array([0.1, 0.2, 0.3]))]) is None


def test_the_interval_covers() -> None:
    rng, hits = np.random.default_rng(3), 0
    for _ in range(300):
        sides = [(rng.random((8, 300)) < rng.beta(20, 80, size=(8, 1))).astype(int).tolist() for _ in range(2)]
        found = disagreement_between(*map(predicting, sides))
        assert found is not None and found.ci95 is not None
        hits += found.ci95[0] <= 2 * 0.2 * 0.8 <= found.ci95[1]
    assert 0.90 < hits / 300 <= 1.0
