"""What is said before the first trial, by an estimate that the tests give."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from composed import settings
from factory import make_record

from runner import forecast
from runner.errors import ConfigError
from runner.estimate import Estimate, NoEstimate
from runner.expand import Asked
from runner.forecast import Forecast
from runner.layout import record_file
from runner.record import Outcome
from runner.rounds import left_to_do
from runner.study import Study


@pytest.fixture(autouse=True)
def five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial takes five seconds, and this process has just begun."""
    monkeypatch.setattr(forecast, "estimated", lambda *_: Estimate(5.0, "a source"))
    monkeypatch.setattr(forecast, "_process_began_s", time.monotonic)


def two_cells(*words: str) -> list[Asked]:
    return [Asked((), settings(f"cudnn={mode}", "device=cpu", *words)) for mode in ("default", "benchmark")]


def there(folder: Path, cells: list[Asked], rounds: int, trials: int) -> dict[str, Any]:
    """A study of so many rounds with the records of its first trials; what its study.json holds."""
    study = Study.ask(folder, {"rounds": rounds}, [one.cell for one in cells])
    for place in range(trials):
        number, cell = place // 2, cells[place % 2].cell
        path = record_file(study.trial_folder(cell.id, number))
        path.parent.mkdir()
        make_record(cell, number).write(path)
    return study.asked()


def told(folder: Path, cells: list[Asked], before: dict[str, Any], given: bool = True, cards: int = 0) -> Forecast:
    return forecast.forecast(Study(folder), before, cells, given, cards)


@pytest.mark.parametrize(("trials", "line"), [(5, None), (6, "about 60 s for 12 trials (from a source)")])
def test_few_trials_are_not_worth_an_estimate(trials: int, line: str | None, tmp_path: Path) -> None:
    found = told(tmp_path, two_cells(f"trials={trials}"), {})
    assert (found.line, found.timed, found.budget) == (line, line is not None, None)


def test_several_cards_share_the_time(tmp_path: Path) -> None:
    assert told(tmp_path, two_cells("trials=100"), {}, cards=4).line == "about 4 min for 200 trials (from a source)"


def test_a_study_that_is_continued_has_its_own_number_of_rounds_and_only_what_is_missing_counts(tmp_path: Path) -> None:
    cells = two_cells("trials=5")
    before = there(tmp_path, cells, rounds=20, trials=10)
    for given in (True, False):
        assert told(tmp_path, cells, before, given).line == "about 2 min for 30 trials (from a source)"


def test_a_pilot_that_failed_is_one_line_and_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Estimate:
        raise NoEstimate("broken\nin several lines")

    monkeypatch.setattr(forecast, "estimated", fails)
    assert told(tmp_path, two_cells("trials=50"), {}) == Forecast("no estimate of the time: broken")
    with pytest.raises(ConfigError, match=r"budget=1h: what a round takes cannot be told: broken\nin several"):
        told(tmp_path, two_cells("trials=50", "budget=1h"), {})


@pytest.mark.parametrize(
    ("budget", "rounds", "line"),
    [
        ("33s", 3, "about 30 s for 6 trials (from a source): what fits into budget=33s"),
        ("2h", 20, "about 3 min for 40 trials (from a source): what fits into budget=2h"),
    ],
)
def test_a_budget_takes_what_fits_up_to_its_most(budget: str, rounds: int, line: str, tmp_path: Path) -> None:
    found = told(tmp_path, two_cells("trials=20", f"budget={budget}"), {})
    assert (found.line, found.timed, found.rounds) == (line, True, rounds)
    assert found.budget is not None
    assert (found.budget.most, found.budget.round_s, found.budget.looked) == (20, 10.0, [])


def test_a_budget_fills_open_rounds_before_it_adds_some(tmp_path: Path) -> None:
    cells = two_cells("trials=20", "budget=33s")
    before = there(tmp_path, cells, rounds=3, trials=5)
    found = told(tmp_path, cells, before)
    assert (found.rounds, found.line) == (5, "about 25 s for 5 trials (from a source): what fits into budget=33s")
    assert found.budget is not None and found.budget.looked == []
    Study(tmp_path).summary_json.write_text("{}")  # whoever has a report has looked
    found = told(tmp_path, cells, before)
    assert found.budget is not None and found.budget.looked == [3]


def test_a_budget_shorter_than_what_is_open_adds_nothing(tmp_path: Path) -> None:
    cells = two_cells("trials=20", "budget=33s")
    before = there(tmp_path, cells, rounds=12, trials=2)
    found = told(tmp_path, cells, before)
    assert (found.rounds, found.line) == (12, "about 30 s for 6 trials (from a source): what fits into budget=33s")


def test_a_budget_for_less_than_a_round_names_what_would_do(tmp_path: Path) -> None:
    why = r"budget=10s: a round of 2 trials takes about 10 s \(from a source\), and 1 s have passed; give at least 11s"
    with pytest.raises(ConfigError, match=why):
        told(tmp_path, two_cells("trials=20", "budget=10s"), {})


@pytest.mark.parametrize(
    ("looked", "rounds", "line"),
    [
        ([], 12, None),
        ([1], 5, None),
        ([10], 10, None),
        ([20], 10, None),
        ([5], 10, None),
        ([10], 20, None),
        ([5], 7, "a look at 7 rounds has no share of the 5 %: verdicts stay those of 5 rounds until 10"),
        ([10], 12, "a look at 12 rounds has no share of the 5 %: verdicts stay those of 10 rounds until 20"),
        ([5, 10, 12], 14, "a look at 14 rounds has no share of the 5 %: verdicts stay those of 10 rounds until 20"),
        ([20], 40, "a look at 40 rounds has no share of the 5 %: verdicts stay those of 20 rounds; ask a new study"),
    ],
)
def test_rounds_whose_look_has_no_share_are_announced(looked: list[int], rounds: int, line: str | None) -> None:
    said = forecast.without_share(looked, rounds)
    assert (said or "").removesuffix(" for others") == (line or "")


def test_pilots_get_what_is_left_of_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []

    def estimated(cells: object, records: object, say: object, end_s: float | None = None) -> Estimate:
        ends.append(end_s)
        return Estimate(5.0, "a source")

    monkeypatch.setattr(forecast, "estimated", estimated)
    monkeypatch.setattr(forecast, "_process_began_s", lambda: 1e9)
    told(tmp_path, two_cells("trials=20", "budget=33s"), {})
    told(tmp_path, two_cells("trials=20"), {})
    assert ends == [1e9 + 33, None]


@pytest.mark.parametrize(
    ("outcome", "retry", "left"),
    [
        ("finished", "failed", 3),
        ("diverged", "failed", 3),
        ("failed", "failed", 4),
        ("timed_out", "failed", 4),
        ("interrupted", "failed", 4),
        ("failed", "none", 3),
        ("interrupted", "none", 4),
    ],
)
def test_what_will_be_done_again_is_left_to_do(outcome: Outcome, retry: str, left: int) -> None:
    cells = two_cells()
    record = replace(make_record(cells[0].cell, 1), outcome=outcome)
    later = make_record(cells[0].cell, 7)  # of a round that is not asked for here
    assert left_to_do([record, later], cells, rounds=2, retry=retry) == left
