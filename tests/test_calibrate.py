"""The calibration of our verdicts in small: what it draws, what it counts, and why the order of a round is shuffled."""

import sys
from pathlib import Path

import numpy as np
import pytest

from runner.analysis.looks import Looks
from runner.analysis.ratio import paired_ratio
from runner.jsonfile import read_json

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))

from calibrate import keep, share, tally
from calibration_page import outside
from real_aa import false_claim
from simulated import Scenario, draw, plain_truth

ROUNDS = (3, 5, 10)
STUDIES = 300


def more_than(share, studies=STUDIES):
    """Four binomial standard errors above a share."""
    return share + 4 * np.sqrt(share * (1 - share) / studies)


def test_without_noise_a_study_shows_its_truths():
    logs = draw(Scenario("x", 0.0, truths=(1.02, 1.03, 0.9)), 3, np.random.default_rng(0)).logs
    assert np.exp(logs[:, 1:] - logs[:, :1]) == pytest.approx(np.tile([1.02, 1.03, 0.9], (3, 1)))


def test_places_are_those_of_the_order():
    fixed = draw(Scenario("x", 0.0, place=0.004, shuffled=False), 4, np.random.default_rng(0)).logs
    assert fixed - fixed[:, :1] == pytest.approx(np.tile([0.0, 0.004, 0.008, 0.012], (4, 1)))
    shuffled = draw(Scenario("x", 0.0, place=0.004), 200, np.random.default_rng(0)).logs
    places = np.rint((shuffled - shuffled.min()) / 0.004).astype(int)
    assert (np.sort(places, axis=1) == np.arange(4)).all()
    assert places.mean(axis=0) == pytest.approx(1.5, abs=4 * np.sqrt(1.25 / 200))


def test_a_drift_runs_through_rounds_and_places():
    logs = draw(Scenario("x", 0.0, drift=0.01, shuffled=False), 3, np.random.default_rng(0)).logs
    assert np.diff(logs.ravel()) == pytest.approx(0.0025)


def test_trials_of_a_lottery_draw_one_of_two_plans():
    drawn = draw(Scenario("x", 0.0, gap=0.2), 400, np.random.default_rng(0))
    assert np.exp(drawn.logs[:, 3] - drawn.logs[:, 0]) == pytest.approx(np.where(drawn.slow, 1.2, 1.0))
    assert abs(drawn.slow.mean() - 0.5) < 4 * np.sqrt(0.25 / 400)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("x", 0.03),
        Scenario("x", 0.01, outliers=0.05),
        Scenario("x", 0.01, drift=0.005),
        Scenario("x", 0.01, place=0.02),
        Scenario("x", 0.01, place=0.02, shuffled=False),
    ],
)
def test_the_true_mean_and_sd_are_those_of_very_many_trials(scenario):
    rng, rounds = np.random.default_rng(0), 10
    times = np.exp([draw(scenario, rounds, rng).logs[:, 0] for _ in range(3000)]).ravel()
    mean, sd = plain_truth(scenario, rounds)
    assert times.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(times.size))
    assert times.std() == pytest.approx(sd, rel=0.03)


def alarms(rounds, shuffled):
    """In how many of the studies an interval of the whole 5 % excludes that nothing differs, which is the truth."""
    scenario, rng = Scenario("x", 0.01, place=0.004, shuffled=shuffled), np.random.default_rng(rounds)
    level = Looks((20,)).level(3)
    found = 0
    for _ in range(STUDIES):
        logs = draw(scenario, rounds, rng).logs
        found += any(
            paired_ratio(ratios, level, 0.0).verdict != "undecided" for ratios in (logs[:, 1:] - logs[:, :1]).T.tolist()
        )
    return found / STUDIES


def test_a_shuffled_order_keeps_false_alarms_at_five_percent():
    assert max(alarms(rounds, shuffled=True) for rounds in ROUNDS) < more_than(0.05)


def test_a_fixed_order_raises_false_alarms_with_every_round_added():
    found = [alarms(rounds, shuffled=False) for rounds in ROUNDS]
    assert found == sorted(found)
    for alarm, expected in zip(found, (0.10, 0.20, 0.51), strict=True):
        assert abs(alarm - expected) < more_than(expected) - expected
    assert found[-1] > 0.05 + 10 * np.sqrt(0.05 * 0.95 / STUDIES)


def test_a_study_that_grows_is_wrong_in_five_percent_over_all_looks():
    hits, of = tally(Scenario("null", 0.02, margin=0.0), 1, STUDIES)
    assert of["wrong claim at any look"] == STUDIES
    assert hits["wrong claim at any look"] / STUDIES < more_than(0.05)
    assert STUDIES - hits["all covered at every look"] == hits["wrong claim at any look"]  # without a margin the same
    for rounds, part in ((5, 1 / 3), (10, 2 / 3), (20, 1)):
        assert hits[f"{rounds} wrong claim"] / STUDIES < more_than(0.05 * part)


def test_ten_rounds_see_what_five_do_not():
    hits, of = tally(Scenario("effects", 0.01, truths=(1.02, 1.03, 1.05)), 1, 100)
    seen = {rounds: hits[f"{rounds} slower at 1.02"] / of[f"{rounds} slower at 1.02"] for rounds in (5, 10, 20)}
    assert seen[5] < 0.5 < seen[10] <= seen[20]
    assert hits["10 slower at 1.05"] == 100


def test_a_share_has_the_binomial_standard_error():
    assert share(50, 1000) == {"share": 0.05, "se": pytest.approx(np.sqrt(0.05 * 0.95 / 1000)), "of": 1000}


def row(**shares):
    claims = {f"{when} wrong claim": 0.01 for when in (5, 10, 20)} | {"wrong claim at any look": 0.01}
    covered = {f"{when} {what} covered": 0.95 for when in (5, 10, 20) for what in ("ratio", "mean", "sd")}
    every = {f"{when} all covered": 0.99 for when in (5, 10, 20)} | {"all covered at every look": 0.96}
    plans = {f"{when} lottery where none is": 0.0 for when in (5, 10, 20)}
    values = claims | covered | every | plans | shares
    tallied = {name: {"share": value, "se": 0.001, "of": 1000} for name, value in values.items()}
    made = {"scenario": {"noise": 0.01}, "studies": 1000, "software": {"python": "3.11"}}
    return {"row": "noise-1", "shares": tallied, **made}


def test_bounds_that_are_not_kept_are_named():
    assert outside([row()]) == []
    broken = {"10 wrong claim": 0.051, "5 ratio covered": 0.93, "20 mean covered": 0.97, "5 all covered": 0.94}
    assert len(outside([row(**broken)])) == 4
    assert outside([row(**{"10 lottery recognised": 0.9})]) == [
        "`noise-1`, 10 lottery recognised: 90.0 ± 0.1 %, should be 95 to 100 %"
    ]


def test_rows_are_kept_one_by_one_and_the_page_is_made_of_all(tmp_path):
    keep([row()], tmp_path)
    keep([row(**{"20 wrong claim": 0.043}) | {"row": "noise-2"}], tmp_path)
    assert read_json(tmp_path / "results" / "calibration" / "noise-1.json", 1)["studies"] == 1000
    page = (tmp_path / "calibration.md").read_text()
    assert "All are kept." in page
    assert "| noise-1 | 1.0 ± 0.1 % | 1.0 ± 0.1 % | 1.0 ± 0.1 % |" in page
    assert "| noise-2 | 1.0 ± 0.1 % | 1.0 ± 0.1 % | 4.3 ± 0.1 % |" in page


def test_a_false_claim_among_names_of_one_mode_is_seen():
    quiet = np.array([[0.001, -0.001, 0.0], [-0.002, 0.002, 0.001], [0.001, 0.0, -0.001], [0.0, 0.0, 0.0]])
    assert not false_claim(quiet, 0.95, 0.02)
    assert not false_claim(quiet, 0.95, 0.0)
    assert false_claim(np.add(quiet, [0.0, 0.0, 0.05]), 0.95, 0.02)
