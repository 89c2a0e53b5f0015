"""A budget: how many rounds fit, by a clock that the tests set; and real studies that keep to one."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from composed import settings
from conftest import call
from factory import make_cell
from hypothesis import given
from hypothesis import strategies as st
from tiny import PLAIN, TINY, done

from runner.budget import Budget
from runner.expand import Asked
from runner.layout import record_file
from runner.owner import Owner
from runner.record import Record, now
from runner.rounds import rounds_to_do
from runner.study import Study
from runner.trial import Trial


def budget(left_s: float, round_s: float, most: int = 20, looked: tuple[int, ...] = ()) -> Budget:
    """A budget of which so much is left at time 1000."""
    return Budget("given", 1000.0 + left_s, most, list(looked), round_s, now=lambda: 1000.0)


@given(left_s=st.floats(-100, 1e5), round_s=st.floats(0.1, 1e4))
def test_rounds_that_fit_leave_their_reserve_and_one_more_would_not(left_s: float, round_s: float) -> None:
    room = budget(left_s, round_s).room
    assert room * round_s * 1.05 <= max(left_s, 0) * (1 + 1e-12)
    assert (room + 1) * round_s * 1.05 > left_s * (1 - 1e-12)


@pytest.mark.parametrize(("left_s", "round_s", "room"), [(105, 10, 10), (104, 10, 9), (10.4, 10, 0), (-3, 10, 0)])
def test_rounds_take_five_percent_more_than_they_are_expected_to(left_s: float, round_s: float, room: int) -> None:
    found = budget(left_s, round_s)
    assert (found.room, found.fits()) == (room, room > 0)


def asked(tmp_path: Path, rounds: int) -> Study:
    return Study.ask(tmp_path / "study", {"rounds": rounds}, [make_cell()])


def test_a_study_gets_longer_one_round_at_a_time_and_is_looked_at_once(tmp_path: Path) -> None:
    study, found = asked(tmp_path, 1), budget(100, 10)
    assert [found.lengthen(study) for _ in range(3)] == [True] * 3
    assert (study.asked()["rounds"], study.asked()["looks"]) == (4, [4])


def test_looks_before_the_budget_stay(tmp_path: Path) -> None:
    study, found = asked(tmp_path, 5), budget(100, 10, looked=(5,))
    assert found.lengthen(study) and found.lengthen(study)
    assert (study.asked()["rounds"], study.asked()["looks"]) == (7, [5, 7])


def test_it_ends_where_no_round_fits_or_no_more_are_wanted(tmp_path: Path) -> None:
    study = asked(tmp_path, 3)
    before = study.asked()
    assert not budget(10, 10).lengthen(study)
    assert not budget(100, 10, most=3).lengthen(study)
    assert study.asked() == before


@dataclass
class Slower:
    """A launcher's stand-in with the clock of a budget: each trial takes `trial_s` and is recorded."""

    study: Study
    trial_s: float
    s: float = 1000.0

    def work(self, left_s: float, most: int) -> list[tuple[int, int]]:
        """Do the rounds of a study within a budget by an estimate of 10 s a round: each one's number and trials."""
        asked = [Asked((), settings(f"cudnn={mode}")) for mode in ("default", "benchmark")]
        Study.ask(self.study.folder, {"rounds": 1}, [one.cell for one in asked], lengthen=False)
        owner, limit = Owner.here(), Budget("given", self.s + left_s, most, [], 10.0, now=lambda: self.s)
        self.study.owner_file(owner.name).parent.mkdir(exist_ok=True)
        owner.write(self.study.owner_file(owner.name))
        done = []
        for places in rounds_to_do(self.study, asked, owner, set(), wide=False, budget=limit):
            done.append((places[0].number, len(places)))
            for place in places:
                trial = Trial.of(place.asked.cell, place.number, place.position, "cpu")
                folder = self.study.claim(trial, owner.name)
                assert folder is not None
                Record.of(trial, "finished", None, now()).write(record_file(folder))
                self.s += self.trial_s
            limit.round_s = 2 * self.trial_s
        return done


@pytest.mark.parametrize(
    ("trial_s", "left_s", "most", "rounds"),
    [
        (5, 55, 20, 5),  # as expected: 10 s a round
        (5, 1000, 20, 20),
        (5, 55, 3, 3),
        (2, 55, 20, 13),  # faster: after 12 rounds 7 s are left, enough for 4.2 s, and then 3 s
        (20, 100, 20, 2),  # slower: after 80 s another 42 s do not fit
        (200, 20, 20, 1),  # the first round was found to fit
    ],
)
def test_rounds_begin_while_they_fit_by_what_the_last_ones_took(
    trial_s: float, left_s: float, most: int, rounds: int, tmp_path: Path
) -> None:
    study = Study(tmp_path / "study")
    assert Slower(study, trial_s).work(left_s, most) == [(number, 2) for number in range(rounds)]
    assert study.asked()["rounds"] == rounds and study.looks == [rounds]
    assert not list((study.folder / "rounds").iterdir())


def test_a_later_budget_goes_on_with_what_is_open_first(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    clock = Slower(study, 5)
    clock.work(33, 20)
    (gone,) = [record for record in study.records() if record.number == 1 and record.position == 0]
    study.set_aside(gone.cell, gone.number)
    assert clock.work(33, 20) == [(1, 1), (3, 2), (4, 2)]


def rounds_of(study: Study) -> list[int]:
    """The number of trials of each round, all of them finished."""
    records = study.records()
    assert {record.outcome for record in records} == {"finished"}
    return [sum(record.number == number for record in records) for number in range(study.asked()["rounds"])]


def test_a_budget_fits_as_many_rounds_as_are_allowed_and_a_later_one_adds_some(tmp_path: Path) -> None:
    words, study = ["cudnn=default,benchmark", *PLAIN, "budget=10min"], Study(tmp_path / "s")
    code, said = done(*words, "trials=2", folder=tmp_path)
    assert code == 0 and "2 cells x 2 rounds = 4 trials" in said and "[4/4]" in said, said
    assert "(from a pilot trial of 10 steps of benchmark (F,T)): what fits into budget=10min" in said
    assert "2 rounds fitted into budget=10min" in said
    assert rounds_of(study) == [2, 2] and study.asked()["looks"] == [2]
    code, said = done(*words, "trials=3", folder=tmp_path)
    assert code == 0 and "(from 4 finished trials)" in said and "pilot" not in said, said
    assert "a look at 3 rounds has no share of the 5 %: verdicts stay those of 2 rounds until 10" in said
    assert rounds_of(study) == [2, 2, 2] and study.asked()["looks"] == [2, 3]
    code, said = done(*words, "trials=3", folder=tmp_path)
    assert code == 0 and "budget=10min: all 3 rounds are there" in said and "no share" not in said, said
    assert json.loads(study.summary_json.read_text())["partial"] is False


def test_no_round_begins_that_will_not_end_in_time_and_none_is_missing_then(tmp_path: Path) -> None:
    slow = ["model._target_=planted_share.SlowLater", "+model.args.seconds=6"]  # which its pilot does not see
    eleven = [word.replace("steps=10", "steps=11") for word in TINY]
    code, said = done("cudnn=default", *eleven, *slow, "budget=40s", folder=tmp_path)
    study = Study(tmp_path / "s")
    assert code == 0 and "missing" not in said, said
    rounds = study.asked()["rounds"]
    assert rounds_of(study) == [1] * rounds and 1 <= rounds <= 40 / 6
    assert f"{rounds} round{'' if rounds == 1 else 's'} fitted into budget=40s" in said
    assert study.asked()["looks"] == [rounds]
    assert json.loads(study.summary_json.read_text())["trials"] == {"asked": rounds, "there": rounds}


def test_a_budget_that_is_over_before_its_pilot_is_refused(tmp_path: Path) -> None:
    code, said = done("cudnn=default,benchmark", *PLAIN, "budget=0.1s", folder=tmp_path)
    why = "error: budget=0.1s: what a round takes cannot be told: no time is left for a pilot trial; give more"
    assert code == 2 and why in said and "pilot trial of" not in said, said
    assert list(tmp_path.iterdir()) == []


def test_a_pilot_that_does_not_end_within_the_budget_is_ended_and_the_budget_refused(tmp_path: Path) -> None:
    hangs = ["model._target_=planted.Fails", "+model.args.how=hang", "+model.args.step=3"]
    code, said = done("cudnn=default", *TINY, *hangs, "budget=30s", folder=tmp_path)
    why = r"error: budget=30s: .*a pilot trial of 10 steps of default \(F,F\) did not end in the [0-9.]+ s left; give"
    assert code == 2 and re.search(why, said), said
    assert list(tmp_path.iterdir()) == []


def test_without_an_estimate_a_budget_is_refused(tmp_path: Path) -> None:
    fails = ["model._target_=planted.Fails", "+model.args.how=raise", "+model.args.step=3"]
    code, said = done("cudnn=default", *TINY, *fails, "budget=1h", folder=tmp_path)
    assert code == 2 and "budget=1h: what a round takes cannot be told: RuntimeError: planted failure" in said, said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["hydra/launcher=joblib", "device=all"])
def test_a_budget_needs_rounds_that_begin_one_after_another(word: str, tmp_path: Path) -> None:
    refused = call("runner", "-m", *PLAIN, "budget=1h", word, folder=tmp_path)
    assert refused.returncode == 2 and refused.stderr.startswith("error: budget=1h: needs hydra/launcher=basic")
    assert list(tmp_path.iterdir()) == []
