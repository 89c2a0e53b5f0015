"""Noise: the implementation's beside the seeds', a mode's beside the default's."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from factory import GPU, Plant, make_cell, make_record, make_study

from runner.analysis.environment import Environment
from runner.analysis.noise import modes_noise, seeds_noise
from runner.analysis.sample import Sample, baselines
from runner.analysis.summary import summarise

FIXED, VARIED = {"base": 0, "vary": []}, {"base": 0, "vary": ["init", "order"]}


def sample(accuracies, seeds=FIXED, mode="deterministic", equal=False, environment=GPU):
    """Trials with these accuracies, each with weights of its own unless `equal`."""
    cell = make_cell(mode, seeds=seeds)
    plant = Plant() if equal else Plant(weights_step=1)
    records = [
        replace(make_record(cell, number, plant, environment=environment), metrics={"accuracy": value})
        for number, value in enumerate(accuracies)
    ]
    return Sample(cell, mode, Environment.of(records[0]), records, baselines([make_cell(seeds=seeds)]).popitem()[0])


def normal(sd, n=20, seed=0):
    return [float(value) for value in 0.9 + np.random.default_rng(seed).normal(0, sd, n)]


def line(fixed, varied, **options):
    (found,) = seeds_noise([sample(fixed, **options), sample(varied, VARIED)])
    return found


def test_the_share_is_that_of_the_variances():
    fixed, varied = normal(0.001, 20, 1), normal(0.002, 30, 2)
    found = line(fixed, varied)
    assert found.sd_fixed == pytest.approx(np.std(fixed, ddof=1))
    assert found.share == pytest.approx(np.var(fixed, ddof=1) / np.var(varied, ddof=1))
    # The 2.5 % and 97.5 % points of F with 19 and 29 degrees of freedom, from a table: 0.416, 2.231.
    assert found.share_ci95 == pytest.approx((found.share / 2.2313, found.share / 0.4164), rel=1e-3)
    assert found.words.startswith(f"the implementation alone makes {100 * found.share:.2g} % [")
    assert found.words.endswith("together with the seeds (init, order): the seeds add to it")


def test_alike_is_not_told():
    found = line(normal(0.002, 20, 1), normal(0.002, 20, 2))
    assert found.words.endswith("whether the seeds add anything to it is not told")


def test_less_than_twenty_trials_answer_nothing():
    for counts in ((19, 20), (20, 19)):
        found = line(*(normal(0.002, n, seed) for seed, n in enumerate(counts)))
        assert (found.share, found.share_ci95) == (None, None)
        assert found.words == "cannot be answered with 19 trials (20 needed)"
        assert found.sd_fixed is not None


def test_bitwise_equal_trials_add_nothing():
    found = line([0.9] * 20, normal(0.002), equal=True)
    assert (found.sd_fixed, found.share) == (0.0, 0.0)
    assert found.words == (
        "the implementation adds nothing: all of it is the seeds' (weights bitwise equal with fixed seeds, 20 of 20)"
    )
    assert line([0.9] * 5, normal(0.002, 5), equal=True).share == 0.0
    assert line([0.9] * 4, normal(0.002, 5), equal=True).share is None
    assert "no spread was seen" in line([0.9] * 20, [0.9] * 20, equal=True).words


def test_equal_accuracies_of_differing_weights_are_not_bitwise():
    found = line([0.9] * 20, normal(0.002))
    assert (found.share, found.words) == (None, "no share to give: with fixed seeds all values are equal")


def test_a_missing_value_leaves_no_spread():
    found = line([*normal(0.001)[:19], None], normal(0.002))
    assert (found.sd_fixed, found.share, found.words) == (None, None, "cannot be answered: a trial has no value")


def test_only_cells_that_differ_in_seeds_alone_are_put_side_by_side():
    fixed = sample(normal(0.001))
    others = [
        sample(normal(0.002), VARIED, "default"),
        sample(normal(0.002), VARIED, environment=GPU | {"torch": "2.11.0"}),
        sample(normal(0.002), {"base": 1, "vary": []}),
    ]
    assert seeds_noise([fixed, *others]) == []
    found = seeds_noise([fixed, sample(normal(0.002), VARIED), sample(normal(0.002), {"base": 0, "vary": ["dropout"]})])
    assert len(found) == 2


def test_the_summary_holds_it(tmp_path):
    cells = [make_cell("deterministic", seeds=seeds) for seeds in (FIXED, VARIED)]
    values = [{number: {"accuracy": value} for number, value in enumerate(normal(sd, 20, 1))} for sd in (0.001, 0.002)]
    plants = [(cell, Plant(weights_step=1, metrics=own)) for cell, own in zip(cells, values, strict=True)]
    summary = summarise(make_study(tmp_path / "study", plants, rounds=20))
    (found,) = summary["noise"]
    assert (found["fixed"], found["varied"], found["metric"]) == (cells[0].id, cells[1].id, "accuracy")
    assert found["share"] == pytest.approx(0.25)


def test_a_modes_noise_beside_the_defaults():
    three = [
        sample(normal(sd, 20, seed), mode=mode)
        for seed, (mode, sd) in enumerate([("default", 0.001), ("benchmark", 0.003), ("deterministic", 0.001)])
    ]
    larger, alike = modes_noise(three)
    assert (larger.cell, larger.baseline) == (three[1].cell.id, three[0].cell.id)
    assert larger.words.startswith("the sds are told apart: ")
    assert alike.words.startswith("the sds are not told apart: ")
    # Simultaneous over two comparisons, 98.75 %: between the tables' points of F with 19 and 19 degrees of freedom for
    # 97.5 % and 99 %.
    assert 2.526 < (larger.ci95[1] / larger.ratio) ** 2 < 3.027


def test_a_cell_tried_in_two_environments_is_one_comparison():
    here, there = [
        [
            sample(normal(0.001, 20, seed), mode=mode, environment=place)
            for seed, mode in enumerate(["default", "benchmark"])
        ]
        for place in (GPU, GPU | {"torch": "other"})
    ]
    (once,) = modes_noise(here)
    assert [one.ci95 for one in modes_noise([*here, *there])] == [once.ci95] * 2


def test_a_modes_noise_needs_twenty_trials_too():
    found = modes_noise([sample(normal(0.001, 10), mode="default"), sample(normal(0.001, 10, 1), mode="benchmark")])
    assert [asdict(one)["words"] for one in found] == ["cannot be answered with 10 trials (20 needed)"]
