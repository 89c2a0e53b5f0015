"""What two trials would say together: worked out by hand, and against a slow computation of its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.analysis.ensemble import MOST_COMPARED, correlation, ensemble, ensemble_gain, independent_sd
from runner.logits import Logits
from runner.report.ensemble import ensemble_words

# A few items and classes; quarters are added without rounding, so that both computations agree in their ties too.
scores = st.integers(-8, 8).map(lambda quarter: quarter / 4)
trials = st.lists(st.lists(st.lists(scores, min_size=3, max_size=3), min_size=4, max_size=4), min_size=2, max_size=5)


def made(values: object, targets: object) -> Logits:
    return Logits(np.array(values, dtype=np.float32), np.array(targets, dtype=np.int64))


def test_the_gain_of_an_ensemble_by_hand() -> None:
    # Both are right about the first two items. The first alone is right about the third, by far; the second about the
    # fourth, by little. Together they are right about the first three.
    targets = [0, 1, 0, 1]
    one = made([[1, 0], [0, 1], [5, 0], [3, 0]], targets)
    other = made([[1, 0], [0, 1], [0, 1], [0, 1]], targets)
    found = ensemble_gain([one, other])
    assert found.mean == pytest.approx(3 / 4 - (3 / 4 + 3 / 4) / 2)
    better = made([[1, 0], [0, 1], [5, 0], [0, 1]], targets)  # right about all four; with the second: all four
    assert ensemble_gain([other, better]).mean == pytest.approx(1 - (3 / 4 + 1) / 2)
    three = ensemble_gain([one, other, better])  # one and better: 3/4 right together
    assert three.mean == pytest.approx((0 + 1 / 8 + (3 / 4 - 7 / 8)) / 3)
    assert (three.trials, three.ci95 is not None) == (3, True)


def test_the_sd_of_independent_errors_by_hand() -> None:
    # Four items, all of class 0. Of four trials the first item is wrong in none, the second in all, the third in 1,
    # the fourth in 2: p = 0, 1, 1/4, 1/2. Plugged in, the sum of p (1 - p) is 3/16 + 4/16; without bias 4/3 of it.
    wrong = [[0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    kept = [made([[1 - one, one] for one in trial], [0] * 4) for trial in wrong]
    found = independent_sd(kept)
    assert found.mean == pytest.approx(np.sqrt(7 / 16 * 4 / 3) / 4)
    assert found.trials == 4 and found.ci95 is not None and found.ci95[0] <= found.mean <= found.ci95[1]
    assert ensemble(kept).summary()["independent_sd"] == found.mean


def test_errors_that_are_always_the_same_give_no_sd_and_other_wrong_classes_count_as_the_same_error() -> None:
    targets = [0, 0, 1]
    one = made([[1, 0, 0], [0, 1, 0], [0, 1, 0]], targets)  # the second item is wrong, once as 1 and once as 2
    other = made([[1, 0, 0], [0, 0, 1], [0, 1, 0]], targets)
    assert independent_sd([one, other, one]).mean == 0.0


def test_the_sd_of_independent_errors_is_that_of_accuracies_with_independent_errors() -> None:
    generator = np.random.default_rng(0)
    rates, trials, n = generator.uniform(0, 0.4, 400), 150, 400
    wrong = generator.random((trials, n)) < rates
    kept = [made(np.stack([~one, one], axis=1), [0] * n) for one in wrong]
    due = np.sqrt((rates * (1 - rates)).sum()) / n
    assert independent_sd(kept).mean == pytest.approx(due, rel=0.02)
    assert (1 - wrong.mean(axis=1)).std(ddof=1) == pytest.approx(due, rel=0.2)


def test_correlations_by_hand() -> None:
    # deviations (-1, 0, 1) and (-2, 1, 1): 3 / sqrt(2 * 6); the ranks 1, 2, 3 and 1, 2.5, 2.5: 1.5 / sqrt(2 * 1.5)
    first, second = made([[0, 1, 2]], [0]), made([[0, 3, 3]], [0])
    found = ensemble([first, second])
    assert found.pearson.mean == pytest.approx(3 / np.sqrt(12))  # type: ignore[union-attr]
    assert found.spearman.mean == pytest.approx(1.5 / np.sqrt(3))  # type: ignore[union-attr]


def test_equal_trials_have_correlation_1_and_gain_0_exactly() -> None:
    one = made(np.random.default_rng(0).normal(size=(50, 10)), np.arange(50) % 10)
    found = ensemble([one] * 4).summary()
    assert (found["gain"], found["pearson"], found["spearman"], found["trials"]) == (0.0, 1.0, 1.0, 4)


def slow_gain(kept: list[Logits]) -> float:
    """The definition word for word: for each pair and each of its members, item by item."""
    gains = []
    for i, one in enumerate(kept):
        for j, other in enumerate(kept):
            if i != j:
                together = alone = 0
                for mine, yours, target in zip(one.values, other.values, one.targets, strict=True):
                    half = [(float(a) + float(b)) / 2 for a, b in zip(mine, yours, strict=True)]
                    together += half.index(max(half)) == target
                    alone += list(mine).index(max(mine)) == target
                gains.append((together - alone) / len(one.targets))
    return sum(gains) / len(gains)


@settings(deadline=None, max_examples=60)
@given(trials, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_the_gain_is_that_of_a_slow_computation(values: list[list[list[float]]], targets: list[int]) -> None:
    kept = [made(one, targets) for one in values]
    assert ensemble_gain(kept).mean == pytest.approx(slow_gain(kept), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(trials)
def test_the_correlation_is_that_of_a_slow_computation(values: list[list[list[float]]]) -> None:
    rows = np.array(values).reshape(len(values), -1)
    found = correlation(rows)
    if any(len(set(row)) == 1 for row in rows.tolist()):
        assert found is None
        return
    pairs = []
    for i in range(len(rows)):
        for j in range(i):
            a, b = rows[i] - sum(rows[i]) / 12, rows[j] - sum(rows[j]) / 12
            pairs.append(sum(a * b) / (sum(a * a) * sum(b * b)) ** 0.5)
    assert found is not None and found.mean == pytest.approx(sum(pairs) / len(pairs), abs=1e-9)


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_the_correlation_knows_no_scale(scale: float, shift: float) -> None:
    rows = np.random.default_rng(1).normal(size=(3, 40))
    before, after = correlation(rows), correlation(np.vstack([rows[0], scale * rows[1] + shift, rows[2]]))
    assert before is not None and after is not None and before.mean == pytest.approx(after.mean)


def test_what_cannot_be_compared_says_why() -> None:
    one = made([[1, 0]], [0])
    assert "two trials" in str(ensemble([one]).why)
    assert "4 MiB" in str(ensemble([one, one, None]).why)
    assert "same items" in str(ensemble([one, made([[1, 0]], [1])]).why)
    assert ensemble([made([[1, 1]], [0]), one]).pearson is None
    found = ensemble([one, None]).summary()
    assert (found["gain"], found["gain_ci95"], found["trials"]) == (None, None, 0)


def test_of_very_many_trials_evenly_spread_ones_are_compared() -> None:
    many = [made([[number, 0]], [0]) for number in range(MOST_COMPARED + 1)]
    assert ensemble(many).summary()["trials"] == 51


def test_in_words() -> None:
    found = {"why": None, "gain": 0.0186, "pearson": 0.873, "spearman": 0.861}
    (words,) = ensemble_words({"ensemble": found})
    assert words == (
        "the accuracy of two trials' mean logits is 1.86 points above either's, "
        "their logits correlate by 0.873 (Spearman 0.861)"
    )
    assert ensemble_words({"ensemble": found | {"gain": 0.0, "pearson": 1.0}}) == ensemble_words({}) == []
    assert ensemble_words({"ensemble": ensemble([None, None]).summary()})[0].startswith("logits are not compared: not")
