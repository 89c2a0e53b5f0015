"""Recipes as users write and ask for them: what is refused, what a study keeps, and the recipes that are shipped."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from composed import composed
from conftest import call
from hydra import initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict
from recipes import ROW, SHIPPED, make_replication, make_row, stand_in

from runner.analysis.quantity import settings_of
from runner.errors import ConfigError
from runner.expand import Asked, expand, replication
from runner.recipe import QUANTITIES, SIZES, Replication
from runner.schema import load
from runner.study import Study


def asked(*words: str, kept: bool = True, **axes: Any) -> tuple[list[Asked], dict[str, Any]]:
    """The cells of a command line and what study.json keeps of its recipe; `axes` are swept over besides."""
    with initialize_config_module(version_base="1.3", config_module="runner.conf"):
        loader = GlobalHydra.instance().config_loader()
        config = loader.load_configuration("config", list(words), run_mode=RunMode.MULTIRUN)
        with open_dict(config):
            config.hydra.sweeper.params.update(axes)
        cells = expand(list(words), config, loader)
        return cells, replication(list(words), cells, config, loader)["recipe"] if kept else {}


def with_recipe(recipe: Any) -> DictConfig:
    """The usual config with a recipe that no file has."""
    config = composed()
    with open_dict(config):
        config.recipe = recipe
    return config


def modes(cells: list[Asked]) -> list[str]:
    return [str(settings_of(one.cell.config)["cudnn"]) for one in cells]


# One of each kind (a phase, a data set, an axis of its own) runs at every test; all of them together take minutes.
QUICK = {"post_modes", "post_timing_loop", "raschka2020", "unet_repeatability"}
LONG = dict.fromkeys(set(SHIPPED) - QUICK, pytest.mark.slow)
FOUR = ["benchmark", "default", "deterministic", "deterministic_benchmark"]


def test_a_recipe_brings_its_axes_and_its_size() -> None:
    cells, kept = asked("recipe=post_modes", "recipe_size=smoke")
    assert modes(cells) == FOUR
    assert {(one.settings.trials, one.settings.train.steps, one.settings.dataset.size) for one in cells} == {
        (2, 12, 32)
    }
    assert (kept["recipe"]["name"], kept["size"], kept["trials"], kept["changed"]) == ("post_modes", "smoke", 2, [])
    assert all("recipe=post_modes" in one.overrides for one in cells)  # else a job would compose another cell


def test_the_size_is_reduced_unless_another_is_asked_for() -> None:
    cells, kept = asked("recipe=post_modes")
    assert (kept["size"], cells[0].settings.train.steps, cells[0].settings.dataset.size) == ("reduced", 120, 224)


def test_a_null_among_sizes_is_null() -> None:
    steps = [asked("recipe=raschka2020", f"recipe_size={size}", kept=False)[0][0].settings.train for size in SIZES]
    assert [(train.epochs, train.steps) for train in steps] == [(50, None), (None, 200), (None, 12)]


def test_without_a_recipe_nothing_is_kept() -> None:
    with initialize_config_module(version_base="1.3", config_module="runner.conf"):
        loader = GlobalHydra.instance().config_loader()
        config = loader.load_configuration("config", [], run_mode=RunMode.MULTIRUN)
        assert replication([], expand([], config, loader), config, loader) == {}


def test_the_command_line_wins_over_an_axis_of_the_same_key() -> None:
    cells, kept = asked("recipe=post_modes", "cudnn=default,benchmark")
    assert modes(cells) == ["default", "benchmark"]
    assert kept["changed"] == []  # a part of the cells is no other protocol


def test_an_axis_of_rows_is_no_product_and_loses_the_keys_that_are_given() -> None:
    rows = ["cudnn=deterministic seeds=fixed", "cudnn=deterministic seeds=init", "cudnn=benchmark seeds=fixed"]
    cells, _ = asked(kept=False, rows=rows)
    found = [(mode, one.settings.seeds.vary) for mode, one in zip(modes(cells), cells, strict=True)]
    assert found == [("deterministic", []), ("deterministic", ["init"]), ("benchmark", [])]
    cells, _ = asked("seeds=order", kept=False, rows=rows)
    assert (modes(cells), cells[0].settings.seeds.vary) == (["deterministic", "benchmark"], ["order"])


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["precision=default,fp32", "cudnn=default"], ["precision=fp32 (recipe: default)"]),
        (
            ["recipe=raschka2020", "dataset=synthetic", "model.depth=34", "determinism=full", "device=cpu"],
            ["model.depth=34 (recipe: 10)", "dataset=synthetic (recipe: cifar10)"],
        ),
        (["cudnn=default", "device=cpu", "threads=1", "trials=3", "timeout=9", "tracking=off"], []),
    ],
)
def test_what_contradicts_a_recipe_is_allowed_and_named(words: list[str], changed: list[str]) -> None:
    recipe = [] if words[0].startswith("recipe") else ["recipe=post_modes"]
    _, kept = asked(*recipe, *words, "recipe_size=smoke")
    assert kept["changed"] == changed


@pytest.mark.parametrize("word", ["recipe=post_modes,raschka2020", "recipe=glob(*)", "recipe_size=full,smoke"])
def test_a_sweep_over_recipes_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="a study follows one recipe at one size") as refused:
        asked(word)
    assert str(refused.value).startswith(word.partition("=")[0])


def test_the_cells_of_a_study_share_one_recipe_which_is_checked_once() -> None:
    cells, _ = asked("recipe=post_modes", "recipe_size=smoke")
    assert len({id(one.settings.recipe) for one in cells}) == 1
    other, _ = asked("recipe=unet_repeatability", "recipe_size=smoke", kept=False)
    assert other[0].settings.recipe != cells[0].settings.recipe


def test_a_recipe_is_no_part_of_a_cell() -> None:
    cells, _ = asked("recipe=post_modes", "cudnn=default")
    cell = cells[0].cell.config
    assert cell.keys() & {"recipe", "recipe_size"} == set()


BAD_ROWS = [
    ({"quantity": "speed"}, "recipe.published[0].quantity=speed: choose one of step_time_ratio"),
    ({"unit": "%"}, "recipe.published[0].unit=%: step_time_ratio has the unit ratio"),
    ({"over": {}}, "recipe.published[0].over={}: step_time_ratio compares two cells"),
    ({"quantity": "autotune", "unit": "s"}, "autotune is of one cell"),
    ({"read": False}, "recipe.published[0].value=1.2: was not read at its source"),
    ({"value": None}, "recipe.published[0].value=None: a number or [low, high] is needed"),
    ({"value": [2, 1]}, "a number or [low, high] is needed"),
    ({"value": "fast"}, "a number or [low, high] is needed"),
    ({"value": True}, "a number or [low, high] is needed"),
    ({"quantity": "verdict", "unit": "words", "over": {}, "value": "same"}, "choose one of bitwise"),
    ({"ddof": 2}, "recipe.published[0].ddof=2: choose one of 0, 1"),
    ({"sizes": ["tiny"]}, "recipe.published[0].sizes=tiny: choose one of full, reduced, smoke"),
    ({"uncertainty": -1}, "recipe.published[0].uncertainty=-1.0: must be at least 0"),
    ({"figure": 1}, "recipe.published[0].figure=1: no such key"),
    ({"read": "perhaps"}, "recipe.published[0].read"),
]


@pytest.mark.parametrize(("changes", "said"), BAD_ROWS, ids=lambda value: str(value)[:40])
def test_a_row_that_makes_no_sense_is_refused(changes: dict[str, Any], said: str) -> None:
    recipe = asdict(make_replication().recipe) | {"published": [ROW | changes]}
    with pytest.raises(ConfigError) as refused:
        load(with_recipe(recipe))
    assert said in str(refused.value)


@pytest.mark.parametrize(("changes", "said"), [({"title": None}, "recipe.title"), ({"published": 3}, "published=3")])
def test_a_recipe_that_is_not_whole_is_refused(changes: dict[str, Any], said: str) -> None:
    recipe = asdict(make_replication(make_row()).recipe) | changes
    with pytest.raises(ConfigError) as refused:
        load(with_recipe(recipe))
    assert said in str(refused.value)


def test_what_a_study_keeps_is_read_back_as_it_was() -> None:
    kept = make_replication(
        make_row(), make_row(value=[1, 2], uncertainty=0.1), changed=["train.steps=3 (recipe: 120)"]
    )
    assert Replication.of(asdict(kept)) == kept


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda kept: kept["recipe"]["published"][0].update(read="yes"), "recipe.published.0.read holds 'yes'"),
        (lambda kept: kept["recipe"].pop("title"), "recipe.recipe lacks title"),
        (lambda kept: kept.pop("size"), "recipe lacks size"),
        (lambda kept: kept.update(recipe=3), "no published rows"),
    ],
)
def test_a_damaged_one_is_named(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    kept = asdict(make_replication(make_row()))
    change(kept)
    with pytest.raises(ValueError, match=said):
        Replication.of(kept)


@pytest.mark.parametrize("name", SHIPPED)
def test_each_row_of_a_shipped_recipe_finds_its_cells(name: str) -> None:
    cells, _ = asked(f"recipe={name}", "recipe_size=full", kept=False)
    recipe = cells[0].settings.recipe
    assert recipe is not None and recipe.name == name
    settings = [settings_of(one.cell.config) for one in cells]
    for row in recipe.published:
        fitting = [one for one in settings if row.cell.items() <= one.items()]
        assert len(fitting) > 1 if row.quantity in ("fastest", "slowest", "most_exact") else len(fitting) == 1, row
        assert not row.over or len([one for one in settings if row.over.items() <= one.items()]) == 1, row
        assert "smoke" not in row.sizes or row.quantity == "default_mode"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_smoke_size_of_a_shipped_recipe_is_sound(name: str) -> None:
    cells, _ = asked(f"recipe={name}", "recipe_size=smoke", kept=False)
    assert len({one.cell.id for one in cells}) == len(cells) > 1


def test_every_quantity_can_be_asked_for() -> None:
    assert all(make_row(quantity=name, unit=quantity.unit) for name, quantity in QUANTITIES.items())


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in SHIPPED])
def test_a_shipped_recipe_runs_on_a_cpu_and_is_reported(name: str, tmp_path: Path) -> None:
    few = ["cudnn=deterministic", "trials=1", "tracking=off", "device=cpu", "threads=1", "study=s"]
    data = stand_in(name, tmp_path)
    done = call("runner", "-m", f"recipe={name}", "recipe_size=smoke", *few, *data, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    study = Study.open(tmp_path / "s")
    published = study.asked()["recipe"]["recipe"]["published"]
    report = study.report_markdown.read_text()
    section = report.partition("## Published beside measured")[2].partition("\n## ")[0]
    assert section.count("\n| ") == 2 + len(published)
    assert "agrees" not in section and "differs |" not in section  # at smoke size nothing is
    assert ("no longer the published protocol: dataset=image" in section) == ("dataset=image_folder" in data)
    assert "published:" in done.stdout or "published figures could not be compared" in done.stdout


def test_missing_data_are_refused_with_the_recipe_and_the_way_to_get_them(refused: Callable[..., str]) -> None:
    message = refused("recipe=raschka2020", "device=cpu")
    for word in ("recipe=raschka2020 needs dataset=cifar10", "cifar-10-batches-py", "dataset.download=true"):
        assert word in message
