"""Plans told apart by gaps in step times: by hand, how often wrongly, and how often where there are two."""

from dataclasses import replace

import numpy as np
import pytest
from factory import GPU, make_sample
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.analysis.lottery import LEAST_GAP, plans_of, step_groups

TIMES = st.lists(st.floats(1.0, 1000.0), max_size=25)


def test_two_plans_by_hand():
    assert plans_of([14.5, 12.1, 12.0, 14.4, 12.1]) == [[1, 2, 4], [0, 3]]


def test_three_plans_and_one_trial_between_them():
    times = [10.0, 12.0, 15.0, 10.01, 12.01, 15.01, 10.02, 12.02, 15.02, 15.01]
    assert plans_of(times) == [[0, 3, 6], [1, 4, 7], [2, 5, 8, 9]]
    alone = [10.0, 10.01, 10.0, 10.02, 10.01, 15.0, 15.01, 15.0, 15.02, 12.0]
    assert plans_of(alone) == [[0, 1, 2, 3, 4, 9], [5, 6, 7, 8]]


@pytest.mark.parametrize(
    "times",
    [
        [],
        [10.0],
        [10.0, 20.0],
        [10.0, 10.0, 20.0],
        [10.0, 10.1, 9.9, 10.0, 13.0],  # one that stands alone may have been disturbed
        [10.0] * 12,
        [10.0, 10.001, 10.0, 10.2, 10.201, 10.2],  # told apart with ease, and of no use to anyone
        list(np.linspace(10.0, 14.0, 10)),  # drift
        [10.0, 10.01, 12.0, 12.01, 15.0, 15.01],  # too few trials for three plans
    ],
)
def test_no_lottery(times):
    assert plans_of(times) == ([list(range(len(times)))] if times else [])


@given(TIMES)
def test_every_trial_is_in_exactly_one_plan_drawn_twice_or_more(times):
    groups = plans_of(times)
    assert sorted(index for group in groups for index in group) == list(range(len(times)))
    assert len(groups) < 2 or min(map(len, groups)) > 1


@given(TIMES, st.randoms(use_true_random=False), st.sampled_from([0.25, 2.0, 1024.0]))
def test_neither_order_nor_unit_matter(times, random, unit):
    gaps = np.diff(np.log(sorted(times)))
    assume(not np.isclose(gaps, np.log1p(LEAST_GAP), atol=1e-9).any())  # there rounding decides
    order = list(range(len(times)))
    random.shuffle(order)
    shuffled = [sorted(order[index] for index in group) for group in plans_of([unit * times[i] for i in order])]
    assert [sorted(times[index] for index in group) for group in shuffled] == [
        sorted(times[index] for index in group) for group in plans_of(times)
    ]


@pytest.mark.parametrize("trials", [5, 10, 15, 20])
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.02, 0.03, 0.3])
def test_at_most_five_percent_of_normal_samples_are_cut(trials, noise):
    rng = np.random.default_rng([trials, int(1000 * noise)])
    cut = np.mean([len(plans_of(np.exp(row))) > 1 for row in rng.normal(0, noise, (1000, trials))])
    assert cut <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("trials", "apart", "noise"),
    [
        (5, 0.2, 0.002),
        (10, 0.2, 0.002),
        (10, 0.2, 0.01),
        (10, 0.2, 0.02),
        (20, 0.2, 0.002),
        (20, 0.2, 0.01),
        (20, 0.2, 0.02),
        (20, 0.2, 0.03),
        (5, 0.1, 0.002),
        (10, 0.1, 0.002),
        (10, 0.1, 0.01),
        (20, 0.1, 0.002),
        (20, 0.1, 0.01),
    ],
)
def test_two_plans_both_drawn_twice_are_told_apart(trials, apart, noise):
    rng, studies = np.random.default_rng([trials, int(100 * apart), int(1000 * noise)]), 500
    found = [recognised(rng, trials, apart, noise) for _ in range(studies)]
    assert np.mean(found) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / studies)


def recognised(rng, trials, apart, noise, beside=()):
    """Whether exactly the two plans are found in one study in which both were drawn at least twice."""
    slow = np.zeros(trials, dtype=bool)
    while not 2 <= slow.sum() <= trials - 2:
        slow = rng.random(trials) < 0.5
    times = np.exp(rng.normal(0, noise, trials)) * np.where(slow, 1 + apart, 1.0)
    groups = plans_of(times, np.exp(beside))
    return groups == [list(np.flatnonzero(~slow)), list(np.flatnonzero(slow))]


def test_few_trials_borrow_the_scatter_of_the_baseline():
    times, steady = [10.0, 12.1, 10.2, 11.9, 10.1], [11.0, 11.1, 10.9, 11.05, 10.95]
    assert plans_of(times) == [[0, 1, 2, 3, 4]]
    assert plans_of(times, steady) == [[0, 2, 4], [1, 3]]
    assert plans_of(times, [11.0, 13.0, 12.0, 10.5, 12.5]) == [[0, 1, 2, 3, 4]]
    narrow = [10.0, 10.5, 10.05, 10.45, 10.1]  # a gap of 3.5 %
    assert plans_of(narrow, [11.0, 11.01, 10.99, 11.0, 11.01]) == [[0, 1, 2, 3, 4]]
    own, base = make_sample("benchmark", times).records, make_sample("default", steady).records
    assert [plan.trials for plan in step_groups(own, base)] == [3, 2]
    assert step_groups(own, own) == []


@pytest.mark.parametrize(
    ("trials", "apart", "noise"), [(5, 0.2, 0.01), (5, 0.2, 0.02), (5, 0.1, 0.01), (10, 0.2, 0.03), (10, 0.1, 0.01)]
)
def test_few_trials_beside_a_baseline_show_two_plans_both_drawn_twice(trials, apart, noise):
    rng, studies = np.random.default_rng([trials, int(100 * apart), int(1000 * noise)]), 500
    found = [recognised(rng, trials, apart, noise, rng.normal(0, noise, trials)) for _ in range(studies)]
    assert np.mean(found) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize("trials", [4, 5, 7, 10, 14])
@pytest.mark.parametrize(("noise", "beside"), [(0.01, 0.01), (0.03, 0.03), (0.3, 0.3), (0.03, 0.002)])
def test_a_baseline_with_less_noise_cuts_at_most_five_percent_of_normal_samples(trials, noise, beside):
    rng = np.random.default_rng([trials, int(1000 * noise), int(1000 * beside)])
    draws = zip(rng.normal(0, noise, (1000, trials)), rng.normal(0, beside, (1000, trials)), strict=True)
    cut = np.mean([len(plans_of(np.exp(own), np.exp(other))) > 1 for own, other in draws])
    assert cut <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_plans_are_reported_with_their_ratio():
    own = make_sample("benchmark", [12.1, 14.5, 12.1, 14.5, 12.1]).records
    fast, slow = step_groups(own, make_sample("default", [11.0] * 5).records)
    assert (fast.step_ms, fast.trials, fast.ratio) == (12.1, 3, pytest.approx(1.1))
    assert (slow.step_ms, slow.trials, slow.ratio) == (14.5, 2, pytest.approx(14.5 / 11))
    assert step_groups(make_sample("benchmark", [12.1] * 5).records, []) == []
    assert [plan.ratio for plan in step_groups(own, [])] == [None, None]


def test_the_pace_of_the_host_is_no_plan():
    own = make_sample("benchmark", [13.9, 13.8, 16.0, 16.1, 14.0, 13.9, 13.8, 13.9, 14.0, 13.9], enqueue_ms=14.7)
    speeds = [replace(one, speed=replace(one.speed, enqueue_ms=11.0)) for one in own.records if one.speed.step_ms < 15]
    slow = [one for one in own.records if one.speed.step_ms > 15]
    assert step_groups([*speeds, *slow], []) == []
    by_the_device = [replace(one, speed=replace(one.speed, enqueue_ms=11.0)) for one in slow]
    assert [plan.trials for plan in step_groups([*speeds, *by_the_device], [])] == [8, 2]


def on_cards(records, *uuids):
    return [replace(record, environment=GPU | {"gpu_uuid": uuid}) for record, uuid in zip(records, uuids, strict=True)]


def test_a_faster_card_is_no_plan():
    cards = ["GPU-1", "GPU-2"] * 4
    base = on_cards(make_sample("default", [10.0, 12.0] * 4).records, *cards)
    assert plans_of([8.0, 9.6] * 4) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert step_groups(on_cards(make_sample("benchmark", [8.0, 9.6] * 4).records, *cards), base) == []
    assert step_groups(base, base) == []
    assert step_groups(on_cards(make_sample("benchmark", [8.0, 9.6] * 4).records, *cards), []) == []


def test_a_lottery_over_two_cards_is_seen():
    cards = ["GPU-1", "GPU-2"] * 4
    base = on_cards(make_sample("default", [10.0, 12.0] * 4).records, *cards)
    own = on_cards(make_sample("benchmark", [8.0, 9.6, 8.0, 13.2, 11.0, 9.6, 8.0, 13.2]).records, *cards)
    assert [(plan.trials, plan.ratio) for plan in step_groups(own, base)] == [
        (5, pytest.approx(0.8)),
        (3, pytest.approx(1.1)),
    ]
