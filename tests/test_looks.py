"""Looks: shares of the 5 % by hand, and what holds whatever the looks."""

import pytest
from factory import four_modes
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis.evidence import Evidence
from runner.analysis.looks import Looks
from runner.analysis.summary import summarise
from runner.jsonfile import read_json, write_json
from runner.report.notes import notes


@pytest.mark.parametrize(
    ("at", "thirds"),
    [
        ([5], 1),
        ([10], 2),
        ([20], 3),
        ([100], 3),
        ([5, 10], 1),
        ([5, 10, 20], 1),
        ([10, 20], 1),
        ([5, 20], 2),
        ([5, 7], 0),
        ([10, 15], 0),
        ([20, 40], 0),
        ([2, 10], 1),
        ([1, 5], 1),
        ([1], 1),
    ],
)
def test_shares_by_hand(at, thirds):
    looks = Looks.of(at)
    assert looks.share == pytest.approx(thirds / 3)
    assert looks.level(3) == pytest.approx(1 - 0.05 * thirds / 9)
    assert looks.level(0) == pytest.approx(1 - 0.05 * thirds / 3)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_all_looks_together_have_the_whole_at_most(rounds):
    at = Looks.of(rounds).at
    shares = [Looks(at[: last + 1]).share for last in range(len(at)) if at[last] > 1]
    assert sum(shares) <= 1 + 1e-9
    assert min(shares, default=0.0) >= 0
    if at[-1] >= 20:
        assert sum(shares) == pytest.approx(1)


def test_looking_again_at_as_many_rounds_is_the_same_look():
    assert Looks.of([5, 10, 10, 5]) == Looks((5, 10))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(2, 100))
def test_the_next_look_has_the_level_that_was_foretold(rounds, further):
    looks = Looks.of(rounds)
    foretold = looks.next_levels(3)[further - 2]
    if looks.over:
        assert foretold == pytest.approx(Looks((further,)).level(3))
    elif further > looks.at[-1]:
        assert foretold == pytest.approx(Looks.of([*rounds, further]).level(3))
    elif further <= looks.at[-1]:
        assert foretold == 1


@pytest.mark.parametrize(
    ("at", "counting", "following"),
    [
        ([5], 5, 10),
        ([10], 10, 20),
        ([20], 20, None),
        ([5, 7], 5, 10),
        ([5, 7, 9], 5, 10),
        ([10, 12], 10, 20),
        ([5, 10], 10, 20),
        ([20, 40], 20, None),
        ([5, 20, 25, 30], 20, None),
        ([1, 3], 3, 10),
    ],
)
def test_the_look_that_counts_is_the_last_with_a_share(at, counting, following):
    looks = Looks.of(at)
    assert (looks.counting.at[-1], looks.next_at) == (counting, following)
    assert looks.counting.share > 0


def asked_at(study, **changes):
    path = study.folder / "study.json"
    write_json(path, read_json(path, 1) | changes)
    return study


def test_a_study_that_grew_is_judged_at_its_share(tmp_path):
    study = asked_at(four_modes(tmp_path / "study", rounds=10), looks=[5, 10])
    summary = summarise(study)
    assert summary["looks"] == {"at": [5, 10], "share": pytest.approx(1 / 3), "counting": 10, "next": 20}
    levels = [cell["speed"]["ratio_to_baseline"]["level"] for cell in summary["cells"]]
    assert levels == pytest.approx([1 - 0.05 / 3 / 3] * 4)


def test_an_older_study_says_neither_looks_nor_plan(tmp_path):
    study = four_modes(tmp_path / "study", rounds=5)
    path = study.folder / "study.json"
    asked = read_json(path, 1)
    write_json(path, {key: value for key, value in asked.items() if key not in ("looks", "plan")})
    summary = summarise(study)
    assert summary["looks"]["at"] == [5]
    assert summary["plan"] == {"steps": 10_000, "runs": 1, "price_per_hour": None, "margin": 0.02}


def test_the_margin_comes_from_the_plan(tmp_path):
    plan = {"steps": 300, "runs": 500, "price_per_hour": 2, "margin": 0.5}
    summary = summarise(asked_at(four_modes(tmp_path / "study"), plan=plan))
    assert (summary["margin"], summary["plan"]) == (0.5, plan)
    assert {cell["speed"]["ratio_to_baseline"]["verdict"] for cell in summary["cells"]} == {"equivalent"}


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (5, 7, "ratios are those of the look at 5 rounds; the next look is at 10"),
        (10, 12, "ratios are those of the look at 10 rounds; the next look is at 20"),
        (20, 24, "ratios are those of the look at 20 rounds; a new study is needed for another"),
    ],
)
def test_rounds_added_between_looks_leave_the_answer_as_it_was(tmp_path, first, then, words):
    before = summarise(asked_at(four_modes(tmp_path / "before", rounds=first), looks=[first]))
    after = summarise(asked_at(four_modes(tmp_path / "after", rounds=then), looks=[first, then]))
    ratios = [[cell["speed"]["ratio_to_baseline"] for cell in one["cells"]] for one in (before, after)]
    assert ratios[0] == ratios[1]
    assert {one["verdict"] for one in ratios[1]} == {"equivalent", "faster", "slower"}
    for question in ("fastest", "reproducible", "balanced"):
        assert after["recommendation"][question]["label"] == before["recommendation"][question]["label"]
    assert after["cells"][0]["speed"]["step_ms"]["n"] == then
    (note,) = [note for note in notes(after) if note.startswith("reports are planned")]
    assert note.endswith(f"this one, at {then} rounds, has nothing of it: {words}")


def test_a_study_without_a_say_is_looked_at_with_what_is_there(tmp_path):
    study = four_modes(tmp_path / "study", rounds=10)
    path = study.folder / "study.json"
    asked = read_json(path, 1)
    write_json(path, {key: value for key, value in asked.items() if key not in ("looks", "rounds")})
    assert Evidence.of(study).looks == Looks((10,))
