"""The bootstrap error of an sd, and the range that is to be expected."""

import numpy as np
import pytest

from runner.analysis.spread import MOST_FOR_RANGE, normal_range, range_interval, sd_error


def test_the_error_of_an_sd_is_that_of_all_its_resamples() -> None:
    # of two values 0 and 2 half of the resamples are equal (sd 0), half are not (sd 1, by n): the sd of these is 1/2
    assert sd_error([0.0, 2.0], ddof=0) == pytest.approx(0.5, abs=0.001)
    assert sd_error([0.0, 2.0], ddof=1) == pytest.approx(np.sqrt(2) / 2, abs=0.001)
    assert sd_error([0.1, 0.1, 0.1], ddof=0) == 0.0


def test_it_is_the_same_in_every_call_and_shrinks_with_the_number_of_trials() -> None:
    values = np.random.default_rng(0).normal(size=400).tolist()
    assert sd_error(values, 0) == sd_error(values, 0)
    assert sd_error(values, 0) == pytest.approx(1 / np.sqrt(2 * 400), rel=0.15)  # of normal values of sd 1


@pytest.mark.parametrize(("n", "due"), [(2, 1.12838), (3, 1.69257), (5, 2.32593), (10, 3.07751), (20, 3.73495)])
def test_the_expected_range_is_that_of_tables(n: int, due: float) -> None:
    assert normal_range(n) == pytest.approx(due, abs=1e-5)


@pytest.mark.parametrize(("n", "least"), [(3, 0.92), (10, 0.92), (20, 0.92)])
def test_the_interval_of_a_range_covers(n: int, least: float) -> None:
    rng, hits = np.random.default_rng(n), 0
    for _ in range(400):
        interval = range_interval(rng.normal(90, 0.2, n).tolist())
        assert interval is not None
        hits += interval[0] <= 0.2 * normal_range(n) <= interval[1]
    assert hits / 400 > least


def test_resampling_would_not_cover() -> None:
    """Why there is no bootstrap here."""
    rng, hits, n = np.random.default_rng(5), 0, 20
    for _ in range(200):
        resampled = np.ptp(rng.choice(rng.normal(size=n), (300, n)), axis=1)
        low, high = np.percentile(resampled, [2.5, 97.5])
        hits += low <= normal_range(n) <= high
    assert hits / 200 < 0.7


def test_few_many_and_equal_values() -> None:
    assert range_interval([0.9]) is None
    assert range_interval([0.9] * 5) == (0.0, 0.0)
    assert range_interval(list(map(float, range(MOST_FOR_RANGE + 1)))) is None
