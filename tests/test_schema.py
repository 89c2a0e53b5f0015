"""The settings: every option of conf/ is one, and what is no setting is refused by name."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from composed import CONF, composed, settings
from omegaconf import OmegaConf

from runner.cell import flatten
from runner.errors import ConfigError
from runner.schema import GROUPS, load
from runner.schema_datasets import DATASETS
from runner.schema_models import MODELS, TASKS
from runner.settings import Settings, cell_config

MODEL_FOR = {"mask": "unet", "sequence": "lstm", "next": "lstm", "forecast": "lstm", "image": "resnet"}
MODEL_FOR |= {"custom": "faster_rcnn"}
# What a file of conf/ leaves to the user, and what else an option needs to make sense.
NEEDED = {
    "model=unet": ["dataset=digits"],
    "model=faster_rcnn": ["dataset=boxes"],
    "model=custom": ["model._target_=planted.Plain"],
    "dataset=custom": ["dataset._target_=planted.plain_data", "dataset.classes=10"],
    "dataset=image_folder": ["dataset.root=pictures"],
    "dataset=mask_folder": ["dataset.root=pictures"],
    "dataset=text": ["dataset.path=a.txt"],
    "dataset=series": ["dataset.path=a.csv"],
    "tracking=server": ["tracking.uri=http://host:5000"],
}


def options() -> Iterator[str]:
    """group=option for every file of every group of conf/, Hydra's own groups and recipes (test_recipe.py) apart."""
    for path in sorted(CONF.glob("*/*.yaml")):
        if path.parent.name != "recipe":
            yield f"{path.parent.name}={path.stem}"


def words_for(option: str) -> list[str]:
    """The option on a base that fits it."""
    group, name = option.split("=")
    model = [f"model={MODEL_FOR[DATASETS[name].VIEWS[0]]}"] if group == "dataset" else []
    return [option, *model, *NEEDED.get(option, [])]


@pytest.mark.parametrize("option", list(options()))
def test_every_option_composes_and_loads(option: str) -> None:
    group, name = option.split("=")
    config = composed(*words_for(option))
    loaded = getattr(load(config), group)
    written = OmegaConf.to_container(config[group], resolve=True)
    assert {item.name: getattr(loaded, item.name) for item in fields(loaded)} == written
    assert group == "cudnn" or not hasattr(loaded, "name") or loaded.name == name


def test_every_family_has_its_file_and_every_file_its_family() -> None:
    assert {path.stem for path in CONF.glob("dataset/*.yaml")} == set(DATASETS)
    assert {path.stem for path in CONF.glob("model/*.yaml")} == set(MODELS) == set(TASKS)


def test_the_four_modes_are_named_after_their_pairs() -> None:
    from runner.mode import mode_name

    names = [path.stem for path in CONF.glob("cudnn/*.yaml")]
    assert sorted(names) == ["benchmark", "default", "deterministic", "deterministic_benchmark"]
    assert all(mode_name(cell_config(settings(f"cudnn={name}"))["cudnn"]) == name for name in names)


PUBLIC = """
attach.command attach.hold
calls.backward calls.float64 calls.kernels calls.times
budget cudnn.benchmark cudnn.benchmark_limit cudnn.deterministic cudnn.enabled
dataset.name dataset.resident dataset.size dataset.view dataset.workers
determinism.algorithms determinism.fill_memory determinism.warn_only determinism.workspace
device exclusive isolation
model.cifar_stem model.depth model.name
phase probe.name probe.repeat probe.steps plan.margin plan.price_per_hour plan.runs plan.steps
precision.name
seeds.base seeds.vary
recipe_size repeat_in_process retry study threads timeout
tracking.experiment tracking.name tracking.required tracking.uri
train.batch_size train.bias_factor train.clip_norm train.compile train.decay_every
train.decay_factor train.epochs train.evaluate_every train.keep_logits train.learning_rate
train.momentum train.nesterov train.optimizer train.poke train.poke_factor train.poke_step train.schedule train.steps
train.warmup_steps train.weight_decay
trial.number trial.position trials
"""


def test_no_key_is_added_or_lost_by_accident() -> None:
    config = OmegaConf.to_container(composed(), resolve=True)
    assert isinstance(config, dict)
    assert set(flatten({str(key): value for key, value in config.items()})) == set(PUBLIC.split())


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ([], "repeat_in_process"),
        ([], "train.steps"),
        ([], "train.epochs"),
        ([], "train.batch_size"),
        ([], "probe.steps"),
        ([], "calls.times"),
        (["dataset=digits"], "dataset.size"),
        (["dataset=digits"], "dataset.workers"),
        *((["dataset=synthetic"], f"dataset.{key}") for key in ("items", "test_items", "channels", "classes", "size")),
        *((["dataset=synthetic"], f"dataset.{key}") for key in ("sizes", "length", "lengths")),
    ],
)
def test_what_no_machine_could_hold_is_refused_before_anything_starts(words: list[str], key: str) -> None:
    config, many = composed(*words), 10**18
    OmegaConf.update(config, key, [many] if key.endswith(("sizes", "lengths")) else many)
    with pytest.raises(ConfigError, match=rf"^{re.escape(key)}={many}: must be below \d+$"):
        load(config)


FAMILIES = {**GROUPS, **{f"model={name}": kind for name, kind in MODELS.items()}} | {
    f"dataset={name}": kind for name, kind in DATASETS.items()
}


@pytest.mark.parametrize("value", ["inf", "nan", "[1,-inf]", "{1:a}", "{a:{b:nan}}"])
def test_what_a_trial_could_not_be_told_is_refused_with_its_key(value: str) -> None:
    with pytest.raises(ConfigError, match=r"model\.args.*is handed on as JSON"):
        load(composed("model=custom", "model._target_=mine.Net", f"+model.args.x={value}"))


def out_of_bounds() -> Iterator[Any]:
    """(option or group, key, a value that its bounds forbid), for every bounded field."""
    for family, kind in [*FAMILIES.items(), ("", Settings)]:
        for item in fields(kind):
            bounds, is_list = item.metadata, "list" in str(item.type)
            bad = [bounds["least"] - 1] if "least" in bounds else []
            bad += [bounds["below"]] if "below" in bounds else []
            bad += ["nonsense" if isinstance(bounds["one_of"][0], str) else -1] if "one_of" in bounds else []
            for value in bad:
                yield pytest.param(family, item.name, [value] if is_list else value, id=f"{family} {item.name}={value}")


@pytest.mark.parametrize(("family", "key", "value"), list(out_of_bounds()))
def test_a_value_out_of_bounds_is_refused_with_its_key(family: str, key: str, value: Any) -> None:
    config = composed(*(words_for(family) if "=" in family else []))
    group = family.split("=")[0]
    name = f"{group}.{key}" if group else key
    OmegaConf.update(config, name, value)
    with pytest.raises(ConfigError) as refused:
        load(config)
    said = str(value[0] if isinstance(value, list) else value)
    assert str(refused.value).startswith(f"{name}={said}: ")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("train.learning_rate", float("nan"), "finite"),
        ("train.learning_rate", float("inf"), "finite"),
        ("timeout", float("inf"), "finite"),
        ("train.steps", 1.5, "Integer"),
        ("train.steps", "many", "Integer"),
        ("cudnn.benchmark", "perhaps", "bool"),
        ("cudnn.benchmark", 2, "true or false"),
        ("cudnn.benchmark", None, "bool"),
        ("cudnn", 5, "deterministic, benchmark, enabled, benchmark_limit"),
        ("model", "resnet", "depth"),
        ("model.name", "alexnet", ", ".join(MODELS)),
        ("dataset.name", "imagenet", "digits"),
        ("seeds.vary", "init", "ListConfig"),
        ("determinism.workspace", ":8:8", ":4096:8, :16:8"),
        ("train.nonsense", 1, "batch_size"),
        ("nonsense", 1, "trials"),
        ("budget", "10", "90s, 10min, 2h"),
        ("device", "cuda:", "cuda:0"),
        ("device", "cuda:-1", "cuda:0"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(key: str, value: Any, words: str) -> None:
    config = composed()
    OmegaConf.update(config, key, value, force_add=True)
    with pytest.raises(ConfigError) as refused:
        load(config)
    assert str(refused.value).startswith(key)
    assert words in str(refused.value)


@pytest.mark.parametrize("key", ["model", "dataset", *GROUPS, "study", "device", "isolation"])
def test_a_deleted_key_is_refused_by_name(key: str) -> None:
    config = composed(f"~{key}")
    with pytest.raises(ConfigError, match=key):
        load(config)


@pytest.mark.parametrize("option", [option for option in NEEDED if option != "model=unet"])
def test_what_is_left_to_the_user_is_asked_for(option: str) -> None:
    words = words_for(option)
    needed = NEEDED[option][0]
    with pytest.raises(ConfigError, match=needed.partition("=")[0]):
        settings(*(word for word in words if word != needed))


@pytest.mark.parametrize("word", ["plan.steps=999999999999", "plan.runs=999999999", "plan.price_per_hour=999999999"])
def test_the_largest_plan_is_one(word: str) -> None:
    key, value = word.removeprefix("plan.").split("=")
    assert getattr(settings(word).plan, key) == int(value)
