"""What of the settings makes a cell, and what only says where, when or how often."""

from dataclasses import fields

import pytest
from composed import settings

from runner.settings import NOT_IN_CELL, Settings, cell_config, view_of


def test_a_view_that_is_asked_for_is_taken() -> None:
    assert view_of(settings("model=lstm", "dataset=synthetic", "dataset.view=forecast")) == "forecast"


ELSEWHERE = ["tracking=off", "trial.number=3", "trial.position=2", "study=there", "trials=9", "timeout=60"]


ELSEWHERE += ["retry=none", "exclusive=false", "plan.steps=500", "budget=10min", "recipe_size=smoke"]


@pytest.mark.parametrize("word", ELSEWHERE)
def test_where_when_and_how_often_do_not_make_another_cell(word: str) -> None:
    assert cell_config(settings(word)) == cell_config(settings())
    assert settings(word) != settings()


def test_those_are_all_keys_that_a_cell_leaves_out() -> None:
    assert {word.split("=")[0].split(".")[0] for word in ELSEWHERE} | {"recipe"} == set(NOT_IN_CELL)
    kept = {item.name for item in fields(Settings)} - set(NOT_IN_CELL)
    of_phases = {"calls", "attach"}  # no other cell depends on them
    assert set(cell_config(settings())) == kept - of_phases
    assert set(cell_config(settings("phase=calls"))) == kept - {"attach"}


def test_a_cell_of_an_attached_script_has_what_is_not_up_to_the_script() -> None:
    words = ["phase=attach", "attach.command=[python,train.py]", "precision=default", "train.steps=7"]
    config = cell_config(settings(*words))
    assert config["attach"] == {"command": ["python", "train.py"], "hold": True}
    assert (config["train"], config["isolation"]) == ({"steps": 7, "compile": "off"}, "spawn")
    for word in ("train.batch_size=3", "dataset.size=16", "model.depth=18", "isolation=spawn"):
        assert cell_config(settings(*words, word)) == config


@pytest.mark.parametrize(
    "word",
    [
        *("cudnn=benchmark", "model.depth=18", "dataset.size=16", "precision=bf16", "determinism=full", "seeds=all"),
        *("train.nesterov=true", "train.bias_factor=0.1", "train.warmup_steps=2", "train.poke=ulp"),
        *("train.clip_norm=1", "train.schedule=one_cycle"),
        *("train.steps=7", "isolation=spawn", "threads=3", "device=cpu", "phase=infer"),
        *("probe=modules", "probe.steps=7", "repeat_in_process=2", "cudnn.enabled=false", "cudnn.benchmark_limit=0"),
    ],
)
def test_what_changes_the_outcome_makes_another_cell(word: str) -> None:
    assert cell_config(settings(word)) != cell_config(settings())


def test_a_cell_knows_the_kind_of_device_not_which_one() -> None:
    assert cell_config(settings("device=cuda:1")) == cell_config(settings("device=cuda"))
