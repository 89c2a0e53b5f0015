"""Quantities of a recipe's rows against examples that were worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from factory import CPU, make_sample
from recipes import make_row

from runner.analysis.looks import Looks
from runner.analysis.quantity import Measured, Measurement, chosen, quantity
from runner.cell import Cell

FOUR = ("default", "benchmark", "deterministic", "deterministic_benchmark")
FOUND = {"trials": 4, "unique_weights": 4, "verdict": "differs", "disagreement": 0.1, "disagreement_ci95": (0.08, 0.12)}
SPEED = {"autotune_s": 1.5, "autotune_s_ci95": (1.4, 1.6)}


def measurement(mode: str, step_ms: Sequence[Any] = (10.0, 10.0), **found: Any) -> Measurement:
    """A cell's trials with these step times; keyword arguments replace what is known of their repeatability."""
    sample = make_sample(mode, step_ms)
    cell = {"speed": SPEED, "reproducibility": FOUND | found, "n": len(step_ms)}
    return Measurement(sample, cell, 0.02, Looks.of([20]))


def with_metrics(*metrics: dict[str, float | None]) -> Measurement:
    """A cell of default (F,F) with one trial for each of these metrics."""
    one = measurement("default", [10.0] * len(metrics))
    records = [replace(record, metrics=own) for record, own in zip(one.sample.records, metrics, strict=True)]
    return replace(one, sample=replace(one.sample, records=records))


def of_one(name: str, *measurements: Measurement, **changes: Any) -> Any:
    return quantity(make_row(quantity=name, cell={"cudnn": "default"}, over={}, **changes), measurements)


def test_the_sd_divides_by_n_or_by_n_minus_1_as_the_row_says() -> None:
    # 90, 92, 94 %: squares of the deviations 4 + 0 + 4, over 3 or over 2
    one = with_metrics({"accuracy": 0.90}, {"accuracy": 0.92}, {"accuracy": 0.94})
    by_n, by_less = of_one("accuracy_sd", one, ddof=0), of_one("accuracy_sd", one, ddof=1)
    assert (by_n.value, by_less.value) == (pytest.approx(np.sqrt(8 / 3)), pytest.approx(2.0))
    # the interval is that of the spread itself: 2 * sqrt(2 / chi2), chi2 = -2 ln(1 -+ 0.95)/2 with 2 degrees of freedom
    due = 2 * np.sqrt(2 / (-2 * np.log(0.025))), 2 * np.sqrt(2 / (-2 * np.log(0.975)))
    assert by_n.ci95 == by_less.ci95 == pytest.approx(due)


def test_equal_accuracies_have_an_sd_of_exactly_0() -> None:
    assert of_one("accuracy_sd", with_metrics(*[{"accuracy": 0.1}] * 3)) == Measured(0.0, (0.0, 0.0), 3, 0.0)


def test_the_cross_entropy_has_its_own_unit() -> None:
    found = of_one("cross_entropy_sd", with_metrics({"loss": 1.0}, {"loss": 3.0}), ddof=0)
    assert (found.value, found.trials) == (1.0, 2)


def test_mean_and_range_of_the_accuracy() -> None:
    one = with_metrics({"accuracy": 0.5}, {"accuracy": 0.75}, {"accuracy": 0.7})
    assert of_one("accuracy_mean", one).value == pytest.approx(65)
    found = of_one("accuracy_range", one)
    assert (found.value, found.trials) == (pytest.approx(25), 3)
    # the range of 3 normal values is 1.693 sds in tables; the sd is 13.2, between 0.5207 and 6.285 times that
    assert found.ci95 == pytest.approx((1.693 * 13.23 * 0.5207, 1.693 * 13.23 * 6.285), rel=2e-3)
    assert of_one("accuracy_range", with_metrics(*[{"accuracy": 0.1 * (n % 3)} for n in range(21)])).ci95 is None


@pytest.mark.parametrize("metrics", [({"accuracy": 0.5}, {"accuracy": None}), ({"mae": 0.5}, {"mae": 0.4})])
def test_an_accuracy_with_a_hole_is_none(metrics: tuple[dict[str, float | None], ...]) -> None:
    assert of_one("accuracy_mean", with_metrics(*metrics)) == "not every trial has a finite accuracy"


def test_disagreement_is_in_percent_and_exactly_0_is_known_exactly() -> None:
    found = of_one("disagreement", measurement("default"))
    assert (found.value, found.ci95) == (pytest.approx(10), pytest.approx((8, 12)))
    none = measurement("default", disagreement=0.0, disagreement_ci95=None)
    assert of_one("disagreement", none) == Measured(0.0, (0.0, 0.0), 4)
    assert "classes" in of_one("disagreement", measurement("default", disagreement=None))


@pytest.mark.parametrize(("distinct", "words"), [(1, "1 of n"), (3, "some of n"), (4, "n of n")])
def test_distinct_weights_are_told_as_shares_of_n(distinct: int, words: str) -> None:
    assert of_one("distinct_weights", measurement("default", unique_weights=distinct)).value == words


def test_a_single_trial_repeats_nothing() -> None:
    one = measurement("default", trials=1, unique_weights=1, verdict="single")
    for name in ("distinct_weights", "verdict"):
        assert of_one(name, one) == "one trial has nothing to compare with"


def test_a_ratio_is_paired_by_round() -> None:
    # slow rounds hit both cells alike: 12/10 and 24/20 are 1.2 each, with an interval of no width
    own, other = measurement("deterministic", [12.0, 24.0, 12.0]), measurement("default", [10.0, 20.0, 10.0])
    found = quantity(make_row(), [own, other])
    assert (found.value, found.ci95, found.trials) == (pytest.approx(1.2), pytest.approx((1.2, 1.2)), 3)
    overhead = quantity(make_row(quantity="step_time_overhead", unit="%"), [own, other])
    assert (overhead.value, overhead.ci95) == (pytest.approx(20), pytest.approx((20, 20)))


def test_any_two_cells_can_be_compared() -> None:
    row = make_row(cell={"cudnn": "deterministic"}, over={"cudnn": "benchmark"})
    found = quantity(row, [measurement("deterministic", [30.0] * 3), measurement("benchmark", [20.0] * 3)])
    assert found.value == pytest.approx(1.5)


def test_the_training_time_is_that_of_the_whole_loop() -> None:
    own, other = measurement("deterministic"), measurement("default")
    records = [
        replace(one, speed=replace(one.speed, train_s=3.0)) for one in own.sample.records
    ]  # the other's take 1 s
    longer = replace(own, sample=replace(own.sample, records=records))
    assert quantity(make_row(quantity="training_time_ratio"), [longer, other]).value == pytest.approx(3)
    assert quantity(make_row(), [longer, other]).value == pytest.approx(1)


def test_the_first_step_leaves_cold_ones_out() -> None:
    one = measurement("default", [10.0] * 3)
    speeds = [
        replace(record.speed, first_step_ms=ms) for record, ms in zip(one.sample.records, (90, 500, 510), strict=True)
    ]
    cold = replace(speeds[0], first_step_ms=9000.0, first_step_read_bytes=2**30)
    records = [
        replace(record, speed=speed) for record, speed in zip(one.sample.records, [cold, *speeds[1:]], strict=True)
    ]
    assert of_one("first_step", replace(one, sample=replace(one.sample, records=records))).value == pytest.approx(505)


def test_tuning_is_what_the_summary_says() -> None:
    assert of_one("autotune", measurement("default")) == Measured(1.5, (1.4, 1.6), 2)


def times(default: float, benchmark: float, deterministic: float, both: float) -> list[Measurement]:
    values = (default, benchmark, deterministic, both)
    return [measurement(mode, [value] * 3) for mode, value in zip(FOUR, values, strict=True)]


@pytest.mark.parametrize(
    ("name", "step_ms", "words"),
    [
        ("fastest", (12.0, 10.0, 14.0, 11.0), "benchmark"),
        ("slowest", (12.0, 10.0, 14.0, 11.0), "deterministic"),
        ("fastest", (12.0, 10.0, 14.0, 10.1), "benchmark or deterministic_benchmark"),  # 1 % is within the margin
        ("slowest", (14.0, 10.0, 14.0, 11.0), "default or deterministic"),
    ],
)
def test_the_fastest_and_the_slowest_mode(name: str, step_ms: tuple[float, ...], words: str) -> None:
    found = quantity(make_row(quantity=name, cell={}, over={}), times(*step_ms))
    assert set(found.value.split(" or ")) == set(words.split(" or "))


def test_the_fastest_of_cells_that_differ_otherwise_is_not_told() -> None:
    two = [measurement("default"), measurement("default"), measurement("benchmark")]
    assert "one cell of each" in str(quantity(make_row(quantity="fastest", cell={}, over={}), two))


def test_cells_are_chosen_by_keys_groups_and_seeds() -> None:
    def made(**config: Any) -> Measurement:
        one = measurement("benchmark")
        return replace(one, sample=replace(one.sample, cell=Cell(one.sample.cell.config | config)))

    plain = made(seeds={"base": 0, "vary": []}, precision={"name": "fp32"})
    init = made(seeds={"base": 0, "vary": ["init"]}, precision={"name": "tf32"})
    everything = made(seeds={"base": 0, "vary": ["augment", "dropout", "init", "order"]}, precision={"name": "fp32"})
    cells = [plain, init, everything]
    assert chosen(cells, {"seeds": "fixed"}) == [plain]
    assert chosen(cells, {"seeds": "init", "cudnn": "benchmark"}) == [init]
    assert chosen(cells, {"seeds": "all"}) == [everything]
    assert chosen(cells, {"precision": "fp32", "model.depth": 18}) == [plain, everything]
    assert chosen(cells, {"cudnn": "default"}) == chosen(cells, {"model.width": 18}) == []


def test_no_cell_and_several_cells_are_named() -> None:
    assert of_one("autotune", measurement("benchmark")) == "the study has no such cell"
    assert of_one("autotune", *[measurement("default")] * 2) == "2 cells fit: default; default"


def test_a_cell_without_a_finished_trial_has_no_figure() -> None:
    one = measurement("default")
    failed = [replace(record, outcome="failed") for record in one.sample.records]
    assert of_one("accuracy_mean", replace(one, sample=replace(one.sample, records=failed))) == "no trial finished"


def test_cards_that_differ_are_not_compared() -> None:
    there = make_sample("default", [10.0, 10.0], environment=CPU | {"host": "node2"})
    other = replace(measurement("default"), sample=there)
    found = quantity(make_row(), [measurement("deterministic"), other])
    assert isinstance(found, Measured) and found.ci95 is None
