"""Cost: the time of a whole training by hand, cold starts, energy, and how trainings are compared."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trained import noisy, sample_of

from runner.analysis.cost import cost_of, training_s
from runner.analysis.looks import Looks
from runner.analysis.ratio import compare
from runner.cell import Cell

TWENTY = Looks.of([20])


def with_speed(sample, number, **changes):
    """The sample with other figures of speed in one trial."""
    records = [
        replace(one, speed=replace(one.speed, **changes)) if one.number == number else one for one in sample.records
    ]
    return replace(sample, records=records)


def test_a_training_by_hand():
    # 0.5 s to build, 2 s for the first step, 99 steps of 10 ms.
    sample = sample_of("benchmark", [10.0, 10.0], first_ms=2000.0)
    assert cost_of(sample, 100).expected_s == pytest.approx(0.5 + 2.0 + 0.99)


def test_each_input_shape_is_paid_for_once():
    # The 48 sizes of a measured study: 9 s for each new one, where an untuned step takes 27 ms.
    sample = sample_of("benchmark", [27.0], first_ms=9000.0, new_shapes_ms=[9000.0] * 47)
    assert cost_of(sample, 1000).expected_s == pytest.approx(0.5 + 48 * 9.0 + (1000 - 48) * 0.027)


def test_a_training_that_ends_before_all_shapes_were_met_pays_for_those_it_met():
    sample = sample_of("benchmark", [27.0], first_ms=9000.0, new_shapes_ms=[8000.0, 7000.0])
    assert cost_of(sample, 2).expected_s == pytest.approx(0.5 + 9.0 + 8.0)
    assert cost_of(sample, 1).expected_s == pytest.approx(0.5 + 9.0)


def test_too_few_steps_for_a_steady_figure_give_no_time():
    sample = sample_of("default", [10.0, None])
    assert training_s(sample.records[1].speed, 100, 1.0) is None
    assert cost_of(sample, 100).expected_s is None
    assert cost_of(sample_of("default", []), 100).expected_s is None


def test_a_cold_start_is_paid_by_no_training():
    sample = sample_of("benchmark", [10.0] * 3, first_ms=2000.0)
    cold = with_speed(sample, 1, first_step_ms=13_600.0, build_s=7.0, first_step_read_bytes=300 * 2**20)
    assert cost_of(cold, 100).expected_s == pytest.approx(cost_of(sample, 100).expected_s)
    assert cost_of(with_speed(sample, 1, first_step_ms=2600.0), 100).expected_s == pytest.approx(0.5 + 2.2 + 0.99)


def test_trials_that_were_all_cold_stand_for_themselves():
    sample = sample_of("benchmark", [10.0] * 3, first_ms=8000.0, first_step_read_bytes=300 * 2**20)
    assert cost_of(sample, 100).expected_s == pytest.approx(0.5 + 8.0 + 0.99)


def test_a_throttled_trial_does_not_count():
    sample = sample_of("default", [10.0, 10.0, 90.0])
    hot = {"before": {"throttle_reasons": ""}, "after": {"throttle_reasons": "hw_thermal_slowdown"}}
    records = [replace(one, covariates=hot) if one.number == 2 else one for one in sample.records]
    assert cost_of(replace(sample, records=records), 100).expected_s == pytest.approx(0.5 + 0.5 + 0.99)


def test_energy_is_that_of_all_samples():
    # 0.25 J a sample, batches of 10.
    assert cost_of(sample_of("default", [10.0] * 2, energy_j_per_sample=0.25), 1000).energy_j == pytest.approx(2500)
    assert cost_of(sample_of("default", [10.0] * 2), 1000).energy_j is None


def test_energy_of_a_stream_does_not_stand_beside_the_time_of_answers_one_by_one():
    sample = sample_of("default", [10.0] * 2, energy_j_per_sample=0.25)
    infer = replace(sample, cell=Cell(sample.cell.config | {"phase": "infer"}))
    cost = cost_of(infer, 1000)
    assert (cost.expected_s, cost.energy_j) == (cost_of(sample, 1000).expected_s, None)


@given(st.floats(1, 200), st.floats(1, 200), st.integers(1, 5000), st.integers(1, 5000))
def test_a_longer_training_never_takes_less(step_ms, first_ms, steps, more):
    sample = sample_of("default", [step_ms], first_ms, new_shapes_ms=[first_ms] * 3)
    assert cost_of(sample, steps + more).expected_s >= cost_of(sample, steps).expected_s


def test_trainings_are_compared_in_pairs():
    """Trials of one round share their drift: only pairs can tell 3 % apart under it."""
    drift = noisy(1.0, 10, seed=1, noise=0.2)
    own, other = (
        sample_of(mode, [step_ms * one for one in drift]) for mode, step_ms in [("benchmark", 97.0), ("default", 100.0)]
    )
    ratio = compare(cost_of(own, 10_000).trainings, cost_of(other, 10_000).trainings, 1, 0.02, TWENTY)
    assert (ratio.paired, ratio.pairs, ratio.verdict) == (True, 10, "faster")
    assert ratio.value == pytest.approx(0.97, abs=1e-3)


def test_the_ratio_is_that_of_whole_trainings():
    own, other = (
        sample_of("benchmark", [8.0] * 3, first_ms=4000.0),
        sample_of("default", [10.0] * 3, first_ms=500.0),
    )
    ratio = compare(cost_of(own, 1001).trainings, cost_of(other, 1001).trainings, 1, 0.02, TWENTY)
    assert ratio.value == pytest.approx((0.5 + 4.0 + 8.0) / (0.5 + 0.5 + 10.0))
    assert ratio.verdict == "slower"
