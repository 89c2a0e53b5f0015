"""What a study says of its time, by a clock that the tests set."""

from dataclasses import replace
from pathlib import Path

import pytest
from factory import make_cell, make_record
from many_calls import SETTINGS, make_calls

from runner.analysis.summary import summarise
from runner.progress import Progress
from runner.study import Study


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


CELLS = [make_cell("default"), make_cell("benchmark")]


def shown(tmp_path: Path, clock: Clock, trials: int, **options: object) -> Progress:
    """Progress after so many trials of 30 s each, of a study of five rounds of two cells."""
    study = Study.ask(tmp_path / "study", {"rounds": 5}, CELLS)
    progress = Progress(study, there=0, now=clock, **options)  # type: ignore[arg-type]
    clock.s += 1000  # what goes before the first trial counts for none
    with progress.watching([]):
        pass
    for number in range(trials):
        clock.s += 30
        progress.show(make_record(CELLS[number % 2], number // 2))
    return progress


def test_the_rest_is_told_once_after_a_rounds_worth_of_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = shown(tmp_path, Clock(), 5, timed=True)
    assert progress.trial_s == 30
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "to go" in line] == ["  about 4 min to go"]
    assert lines.index("  about 4 min to go") == next(at for at, line in enumerate(lines) if "[2/10]" in line) + 1


def test_nothing_is_told_where_no_time_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(tmp_path, Clock(), 0).trial_s == 0
    shown(tmp_path, Clock(), 5)
    assert "to go" not in capsys.readouterr().out


@pytest.mark.parametrize(("step_ms", "said"), [(0.5, " 0.50 ms a call, "), (None, " too few calls, ")])
def test_what_calls_are_is_not_called_a_step(
    step_ms: float | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = make_cell(**SETTINGS)
    record = make_record(cell, calls=make_calls())
    assert record.speed
    study = Study.ask(tmp_path / "study", {"rounds": 1}, [cell])
    Progress(study, there=0).show(replace(record, speed=replace(record.speed, step_ms=step_ms)))
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("[1/1]"))
    assert said in line and "step" not in line


def test_rounds_that_a_budget_may_add_are_shown_and_not_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = shown(tmp_path, Clock(), 3, planned=8)
    said = capsys.readouterr().out
    assert "2 cells x 8 rounds = 16 trials" in said and "[3/16] round 2/8" in said
    progress.close(summarise(progress.study), None)
    assert "0 of 10 trials failed, 10 missing" in capsys.readouterr().out
