"""What comes next: commands that can be copied, and none that would settle nothing."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from factory import GPU, Plant, make_cell, make_study

from runner.analysis.summary import summarise
from runner.report.following import following, rounds_to_ask

ASKED = ["python", "-m", "runner", "-m", "cudnn=glob(*)", "trials=3", "budget=10min", "probe=none", "study=old"]


def summary(tmp_path: Path, trials: int, noise: float, **plant: Any) -> dict[str, Any]:
    """A study of two cells on a GPU."""
    plants = [(make_cell(), Plant(noise=noise, **plant)), (make_cell("benchmark"), Plant(noise=noise, **plant))]
    return summarise(make_study(tmp_path / "study", plants, rounds=trials, environment=lambda cell, number: GPU))


def lines(found: dict[str, Any], folder: str = "/data/my study", **more: Any) -> list[str]:
    options = {"command": ASKED, "uri": None, "missing": False} | more
    return list(following(found, Path(folder), **options))


def test_going_on_is_the_same_command_in_the_same_folder(tmp_path: Path) -> None:
    first, again = lines(summary(tmp_path, 5, 0.0001), missing=True)
    assert first == "to go on: " + shlex.join([*ASKED[:5], "probe=none", 'study="/data/my study"'])
    assert again == "to see it again: python -m runner.report '/data/my study'"


@pytest.mark.parametrize(
    ("trials", "noise", "plant", "rounds"),
    [
        (5, 0.0001, {}, None),
        (5, 0.05, {}, 10),
        (12, 0.05, {}, 20),
        (20, 0.05, {}, None),  # the 5 % are spent
        (3, 0.0001, {}, 10),  # decided, but three equal ones are too few to be called repeatable
        (3, 0.0001, {"weights_step": 2, "loss_step": 2}, None),  # they differ already
    ],
)
def test_more_rounds_are_named_where_they_may_settle_something(
    trials: int, noise: float, plant: dict[str, Any], rounds: int | None, tmp_path: Path
) -> None:
    found = summary(tmp_path, trials, noise, **plant)
    assert rounds_to_ask(found) == rounds
    asked = [line for line in lines(found, "/data/s") if "more rounds" in line]
    words = shlex.join([*ASKED[:5], "probe=none", f"trials={rounds}", "study=/data/s"])
    assert asked == ([f"not all is decided, for more rounds: {words}"] if rounds else [])


@pytest.mark.parametrize("command", [None, [], "python -m runner", [1, 2]])
def test_a_study_that_does_not_say_its_command(command: Any, tmp_path: Path) -> None:
    first, _ = lines(summary(tmp_path, 5, 0.0001), command=command, missing=True)
    assert first == "to go on: the same command with 'study=/data/my study'"


def test_mlflow_is_a_server_or_opened_by_a_command(tmp_path: Path) -> None:
    found = summary(tmp_path, 5, 0.0001)
    assert lines(found, uri="http://host:5000")[-1] == "MLflow: http://host:5000"
    assert lines(found, uri="sqlite:////a b/c.db")[-1] == "MLflow: mlflow ui --backend-store-uri 'sqlite:////a b/c.db'"
