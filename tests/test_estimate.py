"""The estimate before the first trial: from records, else from a pilot trial that leaves nothing behind."""

import re
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from composed import SMALL, settings
from conftest import call
from factory import make_cell, make_record
from tiny import PLAIN, TINY, done

from runner import estimate, isolate
from runner.estimate import NoEstimate, estimated, whole_s
from runner.expand import Asked
from runner.record import Record, Speed, now
from runner.study import Study
from runner.trial import Trial

TWELVE = ["cudnn=glob(*)", "trials=3"]


def speed(**changes: object) -> Speed:
    """Ten steps: the first takes 2 s, the others 0.1 s; an evaluation takes 0.5 s."""
    given = make_record(make_cell()).speed
    assert given is not None
    steps = {"steps": 10, "first_step_ms": 2000.0, "new_shapes_ms": [], "train_s": 2.9, "evaluate_s": 0.5}
    return replace(given, **(steps | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "evaluate_every", "seconds"),
    [
        (10, None, 4.0),
        (110, None, 4.0 + 100 * 0.1),
        (110, 50, 14.0 + 2 * 0.5),
        (100, 50, 13.0 + 0.5),  # the evaluation after the last step is the one that the pilot had too
        (3, None, 4.0),
    ],
)
def test_a_trial_takes_what_its_pilot_took_and_its_further_steps(
    steps: int, evaluate_every: int | None, seconds: float
) -> None:
    assert whole_s(4.0, speed(), steps, evaluate_every) == pytest.approx(seconds)


def test_a_trial_that_trains_three_times_takes_all_that_a_pilot_lacks_three_times() -> None:
    assert whole_s(9.0, speed(), 110, 10, trainings=3) == pytest.approx(9.0 + 3 * (100 * 0.1 + 10 * 0.5))


def test_the_first_step_of_a_new_shape_is_no_later_step() -> None:
    shapes = speed(new_shapes_ms=[1000.0, 1500.0], train_s=2.0 + 2.5 + 7 * 0.1)
    assert whole_s(6.0, shapes, 110, None) == pytest.approx(6.0 + 100 * 0.1)


def test_where_every_step_met_a_new_shape_each_further_one_may_too() -> None:
    shapes = speed(new_shapes_ms=[1000.0] * 9, train_s=2.0 + 9.0)
    assert whole_s(12.0, shapes, 110, None) == pytest.approx(12.0 + 100 * 1.0)


def test_a_single_step_is_the_whole_trial() -> None:
    assert whole_s(3.0, speed(steps=1, train_s=2.0), 1, None) == 3.0


def cells(*modes: str, words: Iterable[str] = ()) -> list[Asked]:
    model = ["model=custom", "model._target_=planted.Plain", *SMALL]
    return [Asked((), settings(f"cudnn={mode}", *model, *words)) for mode in modes]


def recorded(asked: Asked, number: int, seconds: int) -> Record:
    ended = f"2026-12-01T00:00:{seconds:02}+00:00"
    return make_record(asked.cell, number, ended=ended)


def silent(line: str) -> None:
    raise AssertionError(line)


def test_finished_trials_tell_without_a_pilot() -> None:
    both = cells("default", "benchmark")
    records = [recorded(both[0], 0, 10), recorded(both[1], 0, 20), recorded(both[1], 1, 30)]
    failed = replace(recorded(both[0], 1, 1), outcome="failed")
    found = estimated(both, [*records, failed], silent)
    assert (found.trial_s, found.source) == (20.0, "3 finished trials")


def test_each_setting_beside_the_mode_has_a_pilot_of_its_dearest_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    piloted = []

    def pilot_s(asked: Asked, say: object, end_s: float | None) -> float:
        piloted.append((asked.settings.cudnn.benchmark, asked.settings.train.batch_size))
        return float(asked.settings.train.batch_size or 0)

    monkeypatch.setattr(estimate, "_pilot_s", pilot_s)
    modes = ["default", "benchmark"]
    asked = [*cells(*modes), *cells(*modes, words=["train.batch_size=16"]), *cells("default", words=["threads=2"])]
    found = estimated(asked, [], print)
    assert piloted == [(True, 8), (True, 16), (False, 8)]
    assert found.trial_s == (8 + 8 + 16 + 16 + 8) / 5
    assert found.source == "3 pilot trials of at most 10 steps"
    found = estimated(asked[:2], [recorded(asked[2], 0, 10)], print)
    assert found.source == "a pilot trial of 6 steps of benchmark (F,T)"


@pytest.fixture
def leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, of this process and of those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.mark.parametrize("isolation", ["forkserver", "spawn"])
def test_a_pilot_does_ten_steps_leaves_nothing_and_says_what_failed(isolation: str, leftovers: Path) -> None:
    said: list[str] = []
    words = ["train.steps=1000", f"isolation={isolation}"]
    (good,) = cells("default", words=words)
    found = estimated([good], [], said.append)
    assert found.source == "a pilot trial of 10 steps of default (F,F)" and found.trial_s > 0
    assert said == ["a pilot trial of 10 steps of default (F,F) tells first how long the study will take"]
    fails = ["model._target_=planted.Fails", "+model.args.how=raise", "+model.args.step=10"]
    with pytest.raises(NoEstimate, match="planted failure in step 10"):
        estimated(cells("default", words=[*words, *fails]), [], said.append)
    assert list(leftovers.glob("cudnn-mode-runner-*")) == []


@pytest.mark.parametrize(
    ("words", "left_s", "timeouts", "why"),
    [
        ([], 7.0, [7.0], r"a pilot trial of 6 steps of default \(F,F\) did not end in the 7.00 s left; give more"),
        (["timeout=60"], 7.0, [7.0], "did not end in the 7.00 s left; give more"),
        (["timeout=5"], 7.0, [5.0], "planted end"),
        (["timeout=5"], None, [5.0], "planted end"),
        ([], None, [None], "planted end"),
        (["timeout=5"], 0.0, [], "no time is left for a pilot trial; give more"),
        ([], -3.0, [], "no time is left for a pilot trial; give more"),
    ],
)
def test_a_pilot_gets_the_time_of_a_trial_but_no_more_than_is_left(
    words: list[str], left_s: float | None, timeouts: list[float | None], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []

    def run(trial: Trial, folder: Path, working_folder: str, timeout: float | None, say: object) -> Record:
        given.append(timeout)
        return Record.of(trial, "timed_out", "planted end", now())

    monkeypatch.setattr(isolate, "run", run)
    monkeypatch.setattr(estimate.time, "monotonic", lambda: 100.0)
    with pytest.raises(NoEstimate, match=why):
        estimated(cells("default", words=words), [], print, None if left_s is None else 100.0 + left_s)
    assert given == timeouts


def test_epochs_are_counted_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def whole_s(pilot_s: float, speed: Speed, steps: int, evaluate_every: int | None, trainings: int) -> float:
        asked.append((speed.steps, steps))
        return pilot_s

    monkeypatch.setattr(estimate, "whole_s", whole_s)
    estimated(cells("default", words=["train.steps=null", "train.epochs=7"]), [], print)
    assert asked == [(10, 7 * 128 // 8)]


def test_a_study_of_twelve_trials_says_how_long_it_will_take(leftovers: Path, tmp_path: Path) -> None:
    code, said = done(*TWELVE, *PLAIN, folder=tmp_path)
    assert code == 0, said
    first = r"\nabout \d+ (s|min) for 12 trials \(from a pilot trial of 10 steps of benchmark \(F,T\)\)\n"
    later = r"\n\[4/12\] [^\n]*\n  about \d+ (s|min) to go\n\[5/12\] "
    assert re.search(first, said) and re.search(later, said), said
    assert said.count("to go\n") == 1
    study = Study(tmp_path / "s")
    assert len(study.records()) == 12
    assert {path.name for path in study.folder.iterdir()} >= {"cells", "study.json"}
    assert list(leftovers.glob("cudnn-mode-runner-*")) == []


@pytest.mark.parametrize(
    "words", [["trials=2"], pytest.param(["trials=3", "hydra/launcher=joblib"], marks=pytest.mark.slow)]
)
def test_few_trials_and_other_launchers_have_no_pilot(words: list[str], tmp_path: Path) -> None:
    code, said = done("cudnn=glob(*)", *words, *PLAIN, folder=tmp_path)
    assert code == 0 and "pilot" not in said and "about" not in said, said


def test_a_pilot_that_fails_costs_a_line(tmp_path: Path) -> None:
    fails = ["model._target_=planted.Faulty", "+model.args.how=raise", "+model.args.step=3"]
    words = [*TWELVE, *TINY, *fails, "+model.args.benchmark_only=true"]
    code, said = done(*words, folder=tmp_path)
    assert code == 1 and "no estimate of the time: RuntimeError: planted failure" in said, said
    assert "6 of 12 trials failed" in said and "to go\n" not in said, said


@pytest.mark.slow
def test_mlflow_never_hears_of_a_pilot(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    finished = call("runner", "-m", *TWELVE, *PLAIN, "study=s", folder=tmp_path)
    assert finished.returncode == 0 and "pilot trial" in finished.stdout, finished.stdout + finished.stderr
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    assert len(runs) == 12 + 4 + 1
