"""Speed: definitions by hand."""

from dataclasses import replace

import numpy as np
import pytest
from factory import CPU, Plant, make_cell, make_record, make_sample

from runner.analysis.figure import mean_interval
from runner.analysis.looks import Looks
from runner.analysis.ratio import compare, self_ratio
from runner.analysis.speed import speed_figures
from runner.cell import Cell


def compared(own, base):
    return compare(own, base, 1, 0.02, Looks((20,)))


def test_tuning_cost_and_break_even_by_hand():
    own, base = (
        make_sample("benchmark", [8.0, 8.0], first_ms=2500.0),
        make_sample("default", [10.0, 10.0], first_ms=500.0),
    )
    figures = speed_figures(own, base, compared(own, base))
    assert (figures.autotune_s, figures.autotune_seen) == (pytest.approx(2.0), True)
    assert figures.break_even_steps == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("excess_ms", "seen"),
    [
        ([200.0, 220.0, 210.0], True),
        ([49.0, 48.0, 49.5], False),
        ([-300.0, 200.0, 400.0], False),
        ([-200.0, -220.0, -210.0], False),
        ([200.0], True),
    ],
)
def test_a_cost_of_tuning_is_seen_if_it_is_large_enough_and_told_from_none(excess_ms, seen):
    own, base = make_sample("benchmark", [8.0] * len(excess_ms)), make_sample("default", [10.0] * len(excess_ms))
    speeds = [replace(one.speed, first_step_ms=500.0 + more) for one, more in zip(own.records, excess_ms, strict=True)]
    own = replace(own, records=[replace(one, speed=speed) for one, speed in zip(own.records, speeds, strict=True)])
    figures = speed_figures(own, base, compared(own, base))
    assert figures.autotune_seen is seen
    assert figures.autotune_s == pytest.approx(np.median(excess_ms) / 1000)
    expected = mean_interval(np.array(excess_ms) / 1000)
    assert figures.autotune_s_ci95 == (expected and pytest.approx(expected))


def test_no_gain_never_breaks_even_and_the_baseline_has_no_tuning():
    own, base = make_sample("deterministic_benchmark", [12.0, 12.1]), make_sample("default", [10.0, 10.0])
    assert speed_figures(own, base, compared(own, base)).break_even_steps == "never"
    itself = speed_figures(base, base, self_ratio(base, 0.95))
    assert (itself.autotune_s, itself.autotune_seen, itself.break_even_steps) == (None, False, None)
    assert itself.ratio_to_baseline.value == 1.0


def test_host_bound_and_memory():
    busy = make_sample("default", [10.0, 10.0], enqueue_ms=9.6)
    figures = speed_figures(busy, busy, self_ratio(busy, 0.95))
    assert figures.host_bound is True
    waited_for = make_sample("default", [10.0, 10.0], enqueue_ms=9.6, lag_ms=4.0)
    figures_of_it = speed_figures(waited_for, waited_for, self_ratio(waited_for, 0.95))
    assert (figures_of_it.host_bound, figures_of_it.lag_ms) == (False, 4.0)  # the host waited for a full queue
    assert (figures.peak_memory_kind, figures.peak_memory_bytes) == ("allocated", 2_300_000_000)
    synchronizing = make_sample("default", [10.0, 10.0], enqueue_ms=9.6, synchronizing=2)
    figures_of_it = speed_figures(synchronizing, synchronizing, self_ratio(synchronizing, 0.95))
    assert (figures_of_it.host_bound, figures_of_it.synchronizing) == (
        None,
        2,
    )  # the host may have waited: nothing tells
    at_the_border = make_sample("default", [10.0, 10.0, 10.6, 11.0], enqueue_ms=9.5)
    assert speed_figures(at_the_border, at_the_border, self_ratio(at_the_border, 0.95)).host_bound is True  # 2 of 4
    mostly_not = make_sample("default", [10.0, 11.0, 11.0], enqueue_ms=9.5)
    assert speed_figures(mostly_not, mostly_not, self_ratio(mostly_not, 0.95)).host_bound is False
    cpu = make_sample("default", [10.0, 10.0], CPU, enqueue_ms=9.6)
    assert speed_figures(cpu, cpu, self_ratio(cpu, 0.95)).host_bound is None


def test_too_few_steps_give_no_figure():
    short = make_sample("default", [None, None])
    figures = speed_figures(short, short, self_ratio(short, 0.95))
    assert (figures.step_ms, figures.spread, figures.host_bound, figures.plans) == (None, None, None, [])
    assert (figures.ratio_to_baseline.value, figures.ratio_to_baseline.why) == (None, "no steady step time")
    assert figures.first_step_ms == 500.0


def test_new_shapes_are_paid_back_too():
    own = make_sample("benchmark", [8.0, 8.0], first_ms=2500.0, new_shapes_ms=[2000.0, 2020.0])
    base = make_sample("default", [10.0, 10.0], first_ms=500.0, new_shapes_ms=[10.0, 10.0])
    figures = speed_figures(own, base, compared(own, base))
    assert figures.shapes == 3
    assert figures.autotune_s == pytest.approx(6.0)
    assert figures.break_even_steps == pytest.approx(3000.0)


def test_96_steps_over_48_sizes_show_what_tuning_each_of_them_takes():
    own = make_sample("benchmark", [27.1], first_ms=9000.0, new_shapes_ms=[1816.0] * 47, steps_s=95.9)
    base = make_sample("default", [26.5], first_ms=560.0, new_shapes_ms=[85.0] * 47, steps_s=5.9)
    figures, itself = speed_figures(own, base, compared(own, base)), speed_figures(base, base, self_ratio(base, 0.95))
    assert (figures.shapes, figures.steps_s, itself.steps_s) == (48, 95.9, 5.9)
    assert figures.new_shape_ms == pytest.approx(1816 - 27.1)
    assert figures.new_shapes_s == pytest.approx(1.816 * 47)
    assert figures.autotune_s == pytest.approx(8.44 + 1.731 * 47)


@pytest.mark.parametrize(
    "name",
    ["p99_ms", "steps_s", "samples_per_s", "evaluate_samples_per_s", "compile_s", "energy_j_per_sample", "wait_ms"],
)
def test_a_figure_is_the_mean_over_trials_and_none_if_one_lacks_it(name):
    own = make_sample("default", [10.0, 10.0, 10.0], **{name: 1.0})
    records = own.records
    for last, expected in ((4.0, 2.0), (None, None)):
        trial = replace(records[2], speed=replace(records[2].speed, **{name: last}))
        changed = replace(own, records=[*records[:2], trial])
        assert getattr(speed_figures(changed, None, compared(changed, None)), name) == expected


TWO_GROUPS = [12.1, 14.5, 12.1, 14.5, 12.1]


def configured(sample, compile_="off", enabled=True):
    """The sample with these settings of its cell."""
    cudnn = sample.cell.config["cudnn"] | {"enabled": enabled}
    return replace(sample, cell=Cell(sample.cell.config | {"cudnn": cudnn, "train": {"compile": compile_}}))


@pytest.mark.parametrize(
    ("mode", "changes", "tunes"),
    [
        ("default", {}, False),
        ("deterministic", {}, False),
        ("benchmark", {}, True),
        ("deterministic_benchmark", {}, True),
        ("benchmark", {"enabled": False}, False),
        ("default", {"compile_": "default"}, False),
        ("default", {"compile_": "max-autotune"}, True),
        ("benchmark", {"enabled": False, "compile_": "max-autotune"}, True),
    ],
)
def test_only_what_tunes_draws_plans(mode, changes, tunes):
    own, base = configured(make_sample(mode, TWO_GROUPS), **changes), make_sample("default", [11.0] * 5)
    figures = speed_figures(own, base, compared(own, base))
    found, none = (figures.plans, figures.groups) if tunes else (figures.groups, figures.plans)
    assert [(one.step_ms, one.trials) for one in found] == [(12.1, 3), (14.5, 2)]
    assert none == []


def test_spread_reaches_the_figures_of_any_mode_and_groups_need_cuda():
    own, base = make_sample("deterministic", TWO_GROUPS), make_sample("default", [11.0] * 5)
    assert speed_figures(own, base, compared(own, base)).spread == pytest.approx(14.5 / 12.1)
    itself = speed_figures(base, base, self_ratio(base, 0.95))
    assert (itself.plans, itself.groups, itself.spread) == ([], [], 1.0)
    for mode in ("default", "benchmark"):
        cpu = make_sample(mode, TWO_GROUPS, CPU)
        figures = speed_figures(cpu, cpu, self_ratio(cpu, 0.95))
        assert (figures.plans, figures.groups) == ([], [])


def test_one_trial_has_no_spread():
    one = make_sample("default", [10.0])
    figures = speed_figures(one, one, self_ratio(one, 0.95))
    assert (figures.step_ms.n, figures.step_ms.sd, figures.step_ms.ci95, figures.spread) == (1, None, None, None)


def test_planted_noise_reaches_the_record():
    steps = [make_record(make_cell(), n, Plant(ratio=2.0, noise=0.0)).speed.step_ms for n in range(3)]
    assert steps == [80.0] * 3
