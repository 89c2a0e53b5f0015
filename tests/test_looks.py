"""Looks: shares of the 5 % by hand, and what holds whatever the looks."""

import pytest
from factory import four_modes
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis.evidence import Evidence
from runner.analysis.looks import Looks
from runner.analysis.summary import summarise
from runner.jsonfile import read_json, write_json
from runner.report.words import ratio_words


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


def test_what_is_said_where_no_share_is_left():
    spent = "the 5 % are spent by the looks at 5, 10 and 20 rounds: ask a new study"
    assert Looks((5, 10, 20, 40)).why_none == spent
    taken = "the look at 5 rounds took the share of all looks below 10 rounds: look again at 10"
    assert Looks((5, 7)).why_none == taken


def asked_at(study, **changes):
    path = study.folder / "study.json"
    write_json(path, read_json(path, 1) | changes)
    return study


def test_a_study_that_grew_is_judged_at_its_share(tmp_path):
    study = asked_at(four_modes(tmp_path / "study", rounds=10), looks=[5, 10])
    summary = summarise(study)
    assert summary["looks"] == {"at": [5, 10], "share": pytest.approx(1 / 3)}
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


def test_the_report_says_why_a_look_too_many_claims_nothing(tmp_path):
    summary = summarise(asked_at(four_modes(tmp_path / "study", rounds=7), looks=[5, 7]))
    words = ratio_words(summary["cells"][1], summary)
    assert "no interval, undecided: the look at 5 rounds took the share of all looks below 10 rounds" in words
    assert words.endswith("look again at 10; 10 rounds in all would settle it")


def test_a_study_without_a_say_is_looked_at_with_what_is_there(tmp_path):
    study = four_modes(tmp_path / "study", rounds=10)
    path = study.folder / "study.json"
    asked = read_json(path, 1)
    write_json(path, {key: value for key, value in asked.items() if key not in ("looks", "rounds")})
    assert Evidence.of(study).looks == Looks((10,))
