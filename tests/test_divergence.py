"""Divergence: verdicts, places and sentences of planted differences."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from factory import Plant, make_cell, make_record, make_series

from runner.analysis.divergence import divergence, equality_bound
from runner.analysis.doctor import gradients_differ_in
from runner.analysis.flags import flag_mismatches
from runner.analysis.words import across_words


def planted(plant=None, n=3, **process):
    plant = plant or Plant()
    records = [make_record(make_cell(), number, plant) for number in range(n)]
    return divergence(records, [make_series(number, plant) for number in range(n)])


@pytest.mark.parametrize(
    ("plant", "verdict", "first", "sentence"),
    [
        (Plant(), "bitwise", None, "same start, same data, same losses, same weights, same evaluation"),
        (Plant(evaluation=True), "metric-only", None, "same weights, evaluation differs"),
        (Plant(loss_step=5), "loss-only", 5, "same data, first loss difference at step 5, same weights"),
        (
            Plant(loss_step=3, weights_step=3),
            "differs",
            3,
            "same start, same data, first loss difference at step 3, weights equal after step 2, differ after step 4",
        ),
        (Plant(data_step=7, loss_step=7, weights_step=7), "differs", 7, "data differ first at step 7"),
        (Plant(weights_step=1, loss_step=2), "differs", 1, "weights differ after step 1"),
    ],
)
def test_planted_differences_are_found(plant, verdict, first, sentence):
    found = planted(plant)
    assert (found.verdict, found.first_diverging_step) == (verdict, first)
    assert sentence in found.sentence


def test_answers_are_compared_by_their_outputs():
    records = [make_record(make_cell(), number, Plant(weights_step=3)) for number in range(3)]
    assert "outputs equal after step 2, differ after step 4" in divergence(records, [], "infer").sentence
    equal = [make_record(make_cell(), number, Plant()) for number in range(3)]
    assert "same outputs" in divergence(equal, [], "infer").sentence


def test_of_an_attached_script_no_evaluation_is_seen():
    records, series = [make_record(make_cell(), number) for number in range(3)], [make_series() for _ in range(3)]
    assert divergence(records, series, "attach").sentence == "same start, same data, same losses, same weights"


def test_unique_weights_count():
    assert planted(Plant(weights_step=3), n=4).unique_weights == 4
    assert planted(n=4).unique_weights == 1


@pytest.mark.parametrize(("n", "verdict"), [(0, None), (1, "single")])
def test_too_few_trials_are_no_verdict_of_equality(n, verdict):
    found = planted(n=n)
    assert (found.verdict, found.bound_95) == (verdict, None)


@pytest.mark.parametrize(("n", "bound"), [(5, 0.53), (10, 0.28), (2, 0.95)])
def test_bound_of_n_equal_digests(n, bound):
    assert equality_bound(n) == pytest.approx(bound, abs=0.005)


def test_only_bitwise_has_a_bound_and_a_new_start_counts_interpreters():
    assert planted(Plant(loss_step=2)).bound_95 is None
    one = planted(n=5)
    assert (one.interpreters, one.bound_95_new_start) == (1, None)
    records = [make_record(make_cell(), number, process={"interpreter": str(number % 2)}) for number in range(5)]
    assert divergence(records, []).bound_95_new_start == pytest.approx(0.95)


def test_nan_of_the_same_bits_is_equal_and_of_others_is_not():
    nan = np.array([0.5, np.nan], dtype=np.float32)
    other = nan.copy()
    other.view(np.uint32)[1] ^= 1
    records = [make_record(make_cell(), number) for number in range(2)]
    same = divergence(records, [make_series(loss=nan), make_series(loss=nan.copy())])
    assert same.first_loss_step is None
    assert divergence(records, [make_series(loss=nan), make_series(loss=other)]).first_loss_step == 2


def test_where_some_trials_end_earlier_what_all_took_is_compared():
    whole = make_series(0)
    short = replace(whole, data=whole.data[:6], loss=whole.loss[:6])
    records = [make_record(make_cell(), number) for number in range(2)]
    found = divergence(records, [whole, short])
    assert (found.fewest_steps, found.first_data_step, found.first_loss_step) == (6, None, None)
    assert found.first_diverging_step == 7
    other = replace(short, loss=np.append(short.loss[:5], short.loss[5] + 1).astype(short.loss.dtype))
    assert divergence(records, [whole, other]).first_loss_step == 6


def test_where_only_the_numbers_of_steps_differ_that_is_said_and_no_difference():
    whole = make_series(0)
    short = replace(whole, data=whole.data[:6], loss=whole.loss[:6])
    records = [make_record(make_cell(), number) for number in range(2)]
    assert records[1].digests and records[1].speed
    ended = {"steps": {"1": records[1].digests.steps["1"], "4": records[1].digests.steps["4"]}}
    digests = replace(records[1].digests, final="f" * 32, losses="e" * 32, predictions="d" * 32, **ended)
    records[1] = replace(records[1], digests=digests, speed=replace(records[1].speed, steps=6))
    found = divergence(records, [whole, short])
    assert found.verdict == "differs"
    assert across_words(asdict(found)) == "different numbers of steps: compared in the first 6, equal in 2 of 2"
    assert found.sentence == (
        "same start, same data, same losses, same weights, evaluated after different numbers of steps, "
        "different numbers of steps: compared in the first 6"
    )
    other = replace(short, loss=np.append(short.loss[:5], short.loss[5] + 1).astype(short.loss.dtype))
    assert across_words(asdict(divergence(records, [whole, other]))) == "weights differ, 2 different of 2"


def test_different_starts_count_as_step_zero_and_name_the_seeds():
    records = [make_record(make_cell(seeds={"base": 0, "vary": ["init"]}), number) for number in range(2)]
    records = [
        replace(one, digests=replace(one.digests, initial=str(index), final=str(index)))
        for index, one in enumerate(records)
    ]
    found = divergence(records, [])
    assert found.first_diverging_step == 0
    assert found.sentence.startswith("different start")
    assert "by design the seeds differ: init" in found.sentence


def test_flags_that_were_not_as_requested_are_told():
    plant = Plant(flags_after={"benchmark": True})
    found = flag_mismatches([make_record(make_cell(), number, plant) for number in range(2)])
    assert found == ["benchmark was requested as False, read back as True after training (trial 0, 1)"]
    assert flag_mismatches([make_record(make_cell())]) == []


def test_gradients_are_compared_in_the_steps_that_all_trials_took():
    short, whole = {"1": "a", "2": "b", "4": "c"}, {"1": "a", "2": "b", "4": "c", "8": "d"}
    records = [replace(make_record(make_cell(), n), gradients=one) for n, one in enumerate((short, whole))]
    assert gradients_differ_in(records) is None
    assert gradients_differ_in([records[0], replace(records[1], gradients=whole | {"4": "x"})]) == 4
