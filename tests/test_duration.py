"""Durations: what a budget may be, and how one is told."""

import pytest

from runner.duration import exact, rough, seconds_of
from runner.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "seconds"), [("90s", 90), ("10min", 600), ("2h", 7200), ("1.5h", 5400), ("0.5min", 30)]
)
def test_a_budget_is_a_number_and_its_unit(given: str, seconds: float) -> None:
    assert seconds_of(given) == seconds


@pytest.mark.parametrize("given", ["90", "10m", "10 min", "-5s", "0s", "0.0h", "h", "", "1e3s", "1h30min", "ten min"])
def test_anything_else_is_refused_with_the_allowed_forms(given: str) -> None:
    with pytest.raises(ConfigError, match=f"^budget={given}: .*90s, 10min, 2h$"):
        seconds_of(given)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (45.4, "45 s"),
        (99.4, "99 s"),
        (99.6, "2 min"),
        (735, "12 min"),
        (5969, "99 min"),
        (5971, "1.7 h"),
        (12600, "3.5 h"),
    ],
)
def test_an_estimate_has_two_or_three_digits(seconds: float, said: str) -> None:
    assert rough(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.844, "0.84 s"),
        (37.34, "37.3 s"),
        (59.97, "1 min 0 s"),
        (1203.4, "20 min 3 s"),
        (3599.6, "1 h 0 min"),
        (9960, "2 h 46 min"),
        (86_399, "1 d 0 h"),
        (276_000, "3 d 5 h"),
    ],
)  # fmt: skip
def test_an_exact_one_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert exact(seconds) == words
