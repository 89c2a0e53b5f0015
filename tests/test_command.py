"""Commands to try: a study's own command for one cell, with one thing changed, in words that Hydra takes."""

import shlex
from typing import Any

import pytest
from composed import CONF, composed
from factory import make_cell
from hydra.core.override_parser.overrides_parser import OverridesParser

from runner.analysis.command import SHIPPED, deeper, done_in, has, trying

BARE = ["python", "-m", "runner"]
FLAGS = {"algorithms": False, "warn_only": False, "fill_memory": True, "workspace": None}
FULL = {"algorithms": True, "warn_only": False, "fill_memory": True, "workspace": ":4096:8"}


def config(mode: str = "default", **settings: Any) -> dict[str, Any]:
    """A cell's settings."""
    usual = {"determinism": FLAGS, "device": "cuda", "threads": 4, "isolation": "forkserver"}
    return make_cell(mode, **usual | settings).config


def words(command: str) -> list[str]:
    """The words of a command, as the shell splits them and Hydra takes them."""
    given = shlex.split(command)
    assert given[:3] == BARE
    overrides = [word for word in given[3:] if not word.startswith("-")]
    parsed = OverridesParser.create().parse_overrides(overrides)
    assert len(parsed) == len(overrides) == len({one.key_or_group for one in parsed})
    return given[3:]


@pytest.mark.parametrize(
    ("change", "arm"),
    [
        ("cudnn=deterministic", "cudnn=default,deterministic"),
        ("determinism=full", "determinism=flags,full"),
        ("threads=1", "threads=4,1"),
        ("isolation=spawn", "isolation=forkserver,spawn"),
        ("seeds=all", "seeds=fixed,all"),
        ('determinism.workspace=":16:8"', 'determinism.workspace=null,":16:8"'),
    ],
)
def test_both_arms_are_in_one_study(change: str, arm: str) -> None:
    assert words(trying([*BARE, "-m"], config(), change)) == ["-m", arm, "probe=none", "trials=5"]


def test_a_sweep_becomes_this_cell() -> None:
    command = [*BARE, "-m", "cudnn=glob(*)", "model=resnet,unet", "precision=fp32,bf16", "train.batch_size=range(8,64)"]
    cell = config("benchmark", model={"name": "unet"}, precision={"name": "bf16"}, train={"batch_size": 16})
    assert words(trying(command, cell, "determinism=full")) == [
        *["-m", "cudnn=benchmark", "model=unet", "precision=bf16", "train.batch_size=16"],
        *["determinism=flags,full", "probe=none", "trials=5"],
    ]


def test_what_is_changed_replaces_what_was_said_of_it() -> None:
    command = [*BARE, "cudnn=glob(*)", "cudnn.benchmark=true", "cudnn.benchmark_limit=3"]
    said = words(trying(command, config("benchmark"), "cudnn=deterministic"))
    assert said == ["cudnn.benchmark_limit=3", "cudnn=benchmark,deterministic", "probe=none", "trials=5"]


def test_what_belongs_to_that_study_alone_is_left_out() -> None:
    command = [*BARE, "-m", "study=/tmp/mine", "trials=3", "budget=2h", "retry=none", "probe=ops", "probe.steps=4"]
    assert words(trying([*command, "model=resnet"], config(), "threads=1")) == [
        *["-m", "model=resnet", "threads=4,1", "probe=none", "trials=5"]
    ]
    assert "trials=20" in words(trying([*BARE, "trials=20"], config(), "threads=1"))


@pytest.mark.parametrize(("given", "due"), [(2, "train.steps=50"), (49, "train.steps=50"), (50, "train.steps=50x")])
def test_what_is_tried_has_steps_enough_for_a_steady_figure(given: int, due: str) -> None:
    said = words(trying([*BARE, f"train.steps={given}"], config(train={"steps": given}), "threads=1"))
    assert [word for word in said if word.startswith("train.steps")] == [due.removesuffix("x")]
    assert "train.steps" not in trying([*BARE, "train.epochs=2"], config(train={"steps": None}), "threads=1")


def test_each_further_study_has_a_folder_of_its_own() -> None:
    def folder(command: str) -> str:
        *_, word = words(command)
        return str(OverridesParser.create().parse_override(word).value())

    assert folder(trying(BARE, config(), "threads=1", "my studies/a")) == "my studies/a-try-threads-1"
    assert folder(trying(BARE, config(), 'determinism.workspace=":16:8"', "s")) == "s-try-determinism-workspace-16-8"
    assert folder(deeper([*BARE, "study=s"], config(), 3, folder="s")) == "s-why"


def test_a_change_that_another_cell_has_already_is_known() -> None:
    here = config("benchmark", seeds={"base": 0, "vary": []})
    assert done_in(config("deterministic"), here, "cudnn=deterministic")
    assert not done_in(config("deterministic", precision="bf16"), here, "cudnn=deterministic")
    assert not done_in(config("deterministic_benchmark"), here, "cudnn=deterministic")
    assert not done_in(here, here, "cudnn=benchmark")


def test_users_own_words_are_kept_as_they_are() -> None:
    own = ["model=custom", "model._target_=net.Net", "+model.args.widths=[8,16]", "dataset.root='a, b'", "+x={a:1,b:2}"]
    assert words(trying([*BARE, *own], config(), "threads=1"))[:5] == own


def test_settings_of_no_shipped_name_are_left_to_the_study_at_hand() -> None:
    cell = config(determinism=FLAGS | {"workspace": ":16:8"})
    said = words(trying([*BARE, 'determinism.workspace=":16:8"'], cell, "determinism=full"))
    assert said == ["determinism=full", "probe=none", "trials=5"]


def test_a_deeper_look_is_a_short_study_with_a_probe() -> None:
    command = [*BARE, "-m", "cudnn=glob(*)", "train.steps=500", "train.epochs=2", "trials=20", "repeat_in_process=2"]
    assert words(deeper(command, config("benchmark"), 3)) == [
        *["-m", "cudnn=benchmark", "probe=ops", "probe.steps=3", "probe.repeat=true", "train.steps=3", "trials=3"]
    ]
    assert words(deeper(command, config(), 64, "modules"))[2:4] == ["probe=modules", "probe.steps=64"]


@pytest.mark.parametrize(
    ("settings", "change", "there"),
    [
        ({}, "cudnn=default", True),
        ({}, "cudnn=deterministic", False),
        ({"determinism": FULL}, "determinism=full", True),
        ({"determinism": FULL | {"warn_only": True}}, "determinism=full", False),
        ({"determinism": FULL}, 'determinism.workspace=":4096:8"', True),
        ({"determinism": FULL}, 'determinism.workspace=":16:8"', False),
        ({"threads": 1}, "threads=1", True),
        ({"seeds": {"base": 7, "vary": []}}, "seeds=fixed", True),
        ({"seeds": {"base": 0, "vary": ["init"]}}, "seeds=fixed", False),
        ({}, "model.upsampling=transposed", False),
    ],
)
def test_what_a_cell_has_already_is_known(settings: dict[str, Any], change: str, there: bool) -> None:
    assert has(config(**settings), change) is there


@pytest.mark.parametrize("group", SHIPPED)
def test_the_shipped_choices_are_those_of_conf(group: str) -> None:
    assert SHIPPED[group].keys() == {path.stem for path in CONF.glob(f"{group}/*.yaml")}
    for name, values in SHIPPED[group].items():
        there = composed(f"{group}={name}")[group]
        assert values == {key: there[key] for key in values}
        if group == "determinism":
            assert values.keys() == there.keys()
