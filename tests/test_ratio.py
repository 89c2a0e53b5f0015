"""Ratios: pairs, intervals and verdicts by hand, agreement with scipy, coverage by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from factory import CPU, GPU, make_sample
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.analysis.figure import sd_interval, welch_interval
from runner.analysis.looks import MOST_ROUNDS, ROUNDS, Looks
from runner.analysis.ratio import compare, decide, half_widths, paired_ratio, pairs_of, rounds_to_settle

values = st.lists(st.floats(-5, 5), min_size=2, max_size=12)
AT_ONCE = Looks((20,))


def compared(own, base, comparisons=1, looks=AT_ONCE):
    return compare(own, base, comparisons, 0.02, looks)


@given(values, st.floats(0.001, 1000))
def test_ratio_is_invariant_under_a_common_scale(logs, scale):
    steps = np.exp(np.array(logs) / 10)
    one = compared(make_sample("benchmark", 3 * steps), make_sample("default", steps**2), 3)
    two = compared(make_sample("benchmark", 3 * steps * scale), make_sample("default", steps**2 * scale), 3)
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
    ratio = compared(make_sample("benchmark", [8, 8.1, 7.9]), make_sample("default", [10, 10, 10]), 3)
    logs = np.log([0.8, 0.81, 0.79])
    expected = np.exp(stats.ttest_1samp(logs, 0).confidence_interval(1 - 0.05 / 3))
    assert ratio.level == pytest.approx(1 - 0.05 / 3)
    assert ratio.ci95 == pytest.approx(tuple(expected))
    assert (ratio.verdict, ratio.pairs, ratio.paired) == ("faster", 3, True)


def test_pairs_need_the_same_round_host_and_gpu():
    own, other = make_sample("benchmark", [8, 8, 8]), make_sample("default", [10, 10, 10])
    moved = [replace(record, environment=GPU | {"gpu_uuid": f"GPU-{record.number}"}) for record in own.records]
    assert [pair[0].number for pair in pairs_of(replace(own, records=moved), other)] == [1]
    assert len(pairs_of(own, other)) == 3


def turned(sample):
    """The same trials in the opposite rounds, on the cards GPU-0, GPU-1 and so on: none can be paired."""
    last = len(sample.records) - 1
    moved = [replace(one, environment=GPU | {"gpu_uuid": f"GPU-{last - one.number}"}) for one in sample.records]
    return replace(sample, records=moved)


def spread(sample):
    """Each trial on the card of its number."""
    moved = [replace(one, environment=GPU | {"gpu_uuid": f"GPU-{one.number}"}) for one in sample.records]
    return replace(sample, records=moved)


def test_unpaired_trials_are_said_to_be_so():
    own, base = [make_sample("benchmark", [8, 8.1, 7.9, 8]), make_sample("default", [10, 10.1, 9.9, 10])]
    ratio = compared(turned(own), spread(base), 1)
    assert ratio.verdict == "faster"
    assert (ratio.paired, ratio.why) == (False, "no round has both on the same GPU and host")
    expected = welch_interval(np.log([8, 8.1, 7.9, 8]), np.log([10, 10.1, 9.9, 10]))
    assert ratio.ci95 == pytest.approx(tuple(np.exp(expected)))


@pytest.mark.parametrize("place", [{"gpu_uuid": "GPU-2"}, {"host": "node2"}, {"host": "node2", "gpu_uuid": None}])
def test_different_cards_claim_nothing(place):
    ratio = compared(make_sample("benchmark", [8, 8.1, 7.9], GPU | place), make_sample("default", [10, 10.1, 9.9]), 1)
    assert (ratio.value, ratio.ci95, ratio.verdict) == (pytest.approx(0.8, rel=1e-3), None, "undecided")
    assert (ratio.paired, ratio.why) == (False, "they ran on different cards")


def test_a_card_in_common_makes_the_claim():
    own = make_sample("benchmark", [8, 8.1, 7.9], GPU | {"gpu_uuid": "GPU-2"})
    base = make_sample("default", [10, 10.1, 9.9, 10])
    moved = [*base.records[:3], replace(base.records[3], environment=GPU | {"gpu_uuid": "GPU-2"})]
    ratio = compared(own, replace(base, records=moved), 1)
    expected = welch_interval(np.log([8, 8.1, 7.9]), np.log([10, 10.1, 9.9, 10]))
    assert (ratio.paired, ratio.why) == (False, "no round has both on the same GPU and host")
    assert ratio.ci95 == pytest.approx(tuple(np.exp(expected)))


def test_a_single_pair_among_several_trials_is_not_all_that_is_used():
    own, base = make_sample("benchmark", [8, 8.1, 7.9]), make_sample("default", [10, 10.1, 9.9])
    moved = [replace(one, environment=GPU | {"gpu_uuid": "GPU-2"}) for one in own.records[1:]]
    ratio = compared(replace(own, records=[own.records[0], *moved]), base, 1)
    expected = welch_interval(np.log([8, 8.1, 7.9]), np.log([10, 10.1, 9.9]))
    assert (ratio.paired, ratio.why) == (False, "only one round has both on the same GPU and host")
    assert ratio.ci95 == pytest.approx(tuple(np.exp(expected)))
    assert ratio.verdict == "faster"


def test_one_pair_decides_nothing():
    ratio = compared(make_sample("benchmark", [8.0]), make_sample("default", [10.0]), 1)
    assert (ratio.value, ratio.ci95, ratio.verdict) == (pytest.approx(0.8), None, "undecided")
    assert (ratio.paired, ratio.rounds, ratio.why) == (True, None, "one pair gives no interval")


def test_inert_prints_the_ratio_all_the_same():
    ratio = compared(make_sample("benchmark", [8.0, 8.1], CPU), make_sample("default", [10.0, 10.0], CPU), 1)
    assert ratio.verdict == "inert"
    assert ratio.value == pytest.approx(0.805, abs=1e-3)


def test_missing_baseline_gives_no_ratio():
    ratio = compared(make_sample("benchmark", [8.0, 8.1]), None, 1)
    assert (ratio.value, ratio.verdict) == (None, "undecided")


@settings(max_examples=30)
@given(st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=8))
def test_rounds_to_settle_settle(logs):
    further = half_widths(np.where(len(logs) < ROUNDS, 0.95, 1.0))
    if np.std(logs) < 1e-4:
        return
    low, high = rounds_to_settle(logs, further, 0.02)
    assert low is None or len(logs) < low <= MOST_ROUNDS
    assert high is None or (low is not None and low <= high)
    if high is not None:
        mean, sd = np.mean(logs), sd_interval(logs)[1]
        half = stats.t.ppf(0.975, high - 1) * sd / np.sqrt(high)
        assert decide(tuple(np.exp([mean - half, mean + half])), 0.02) != "undecided"


def test_rounds_beyond_the_cap_are_said():
    assert rounds_to_settle([-3.0, 3.001], half_widths(np.full(ROUNDS.size, 0.95)), 0.02)[1] is None


# Mean -0.5 %, sd 2.2 %: the interval of the first look holds 1 and leaves the margin.
UNSURE = np.exp([0.025, -0.03, 0.01, -0.015, -0.015])


def test_rounds_to_settle_have_the_level_of_the_look_they_would_be():
    ratio = compared(make_sample("benchmark", 10 * UNSURE), make_sample("default", [10.0] * 5), 3, Looks((5,)))
    assert (ratio.verdict, ratio.new_study) == ("undecided", False)
    assert ratio.level == pytest.approx(1 - 0.05 / 3 / 3)

    def settled(rounds, sd):
        left = 0 if rounds < 10 else 1 / 3 if rounds < 20 else 2 / 3
        half = stats.t.ppf(1 - 0.05 * left / 3 / 2, rounds - 1) * sd / np.sqrt(rounds)
        return half < np.log(1.02) - 0.005

    for found, sd in zip(ratio.rounds, sd_interval(np.log(UNSURE)), strict=True):
        assert found == next(rounds for rounds in range(6, 1000) if settled(rounds, sd))
    assert ratio.rounds[0] >= 10


def test_what_20_rounds_leave_undecided_asks_for_a_new_study():
    steps = 10 * np.tile(UNSURE, 4) ** 3
    ratio = compared(make_sample("benchmark", steps), make_sample("default", [10.0] * 20), 3, Looks((5, 20)))
    assert (ratio.verdict, ratio.new_study) == ("undecided", True)
    assert ratio.ci95 is not None
    fresh = 1 - 0.05 * np.where(ROUNDS < 10, 1 / 3, np.where(ROUNDS < 20, 2 / 3, 1)) / 3
    assert ratio.rounds == rounds_to_settle(np.log(steps / 10).tolist(), half_widths(fresh), 0.02)


def test_a_look_without_a_share_is_that_of_the_rounds_that_had_one():
    own, base = make_sample("benchmark", np.linspace(7.9, 8.1, 30)), make_sample("default", [10.0] * 30)
    least = [replace(one, records=one.records[:20]) for one in (own, base)]
    assert compared(own, base, looks=Looks((30,))).pairs == 30
    spent = compared(own, base, looks=Looks((20, 30)))
    assert spent == compared(*least, looks=Looks((20,)))
    assert (spent.pairs, spent.verdict) == (20, "faster")
    taken = compared(own, base, 3, looks=Looks((5, 7)))
    assert (taken.pairs, taken.level) == (5, pytest.approx(1 - 0.05 / 9))


def test_what_is_open_between_looks_is_foretold_for_the_next_one():
    own, base = make_sample("benchmark", [*(10 * UNSURE), 1.0, 1.0]), make_sample("default", [10.0] * 7)
    ratio = compared(own, base, 3, Looks((5, 7)))
    assert (ratio.verdict, ratio.new_study) == ("undecided", False)
    left = 1 - 0.05 * np.where(ROUNDS < 10, 0, np.where(ROUNDS < 20, 1 / 3, 2 / 3)) / 3
    assert ratio.rounds == rounds_to_settle(np.log(UNSURE).tolist(), half_widths(left), 0.02)


def test_unpaired_trials_share_the_looks_too():
    own, base = turned(make_sample("benchmark", [8, 8.1, 7.9, 8])), spread(make_sample("default", [10, 11, 10, 11]))
    expected = welch_interval(np.log([8, 8.1, 7.9, 8]), np.log([10, 11, 10, 11]), 1 - 0.05 / 3)
    for looks in (Looks((5,)), Looks((5, 7))):
        assert compared(own, base, looks=looks).ci95 == pytest.approx(tuple(np.exp(expected)))


def hot(record):
    return replace(record, covariates={"before": {}, "after": {"throttle_reasons": "sw_thermal_slowdown"}})


def test_trials_whose_speed_does_not_count_make_no_pair_whatever_they_took():
    own, base = make_sample("benchmark", [8, 8, 8, 8]), make_sample("default", [10, 10, 10, 10])
    own = replace(own, records=[hot(own.records[0]), *own.records[1:]])
    base = replace(base, records=[*base.records[:3], hot(base.records[3])])
    assert [pair[0].number for pair in pairs_of(own, base)] == [1, 2]
    ratio = compared(own, base)
    assert (ratio.pairs, ratio.paired) == (2, True)


def test_the_margin_is_the_one_asked_for():
    own, base = make_sample("benchmark", [10.30, 10.31, 10.29]), make_sample("default", [10.0, 10.0, 10.0])
    assert compare(own, base, 1, 0.02, AT_ONCE).verdict == "slower"
    assert compare(own, base, 1, 0.05, AT_ONCE).verdict == "equivalent"


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
