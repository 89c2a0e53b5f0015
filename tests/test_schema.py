"""The settings: every option of conf/ is one, and what is no setting is refused by name."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from composed import CONF, composed, settings
from omegaconf import OmegaConf

from runner.cell import flatten
from runner.errors import ConfigError
from runner.schema import GROUPS, NOT_IN_CELL, Settings, cell_config, load, view_of
from runner.schema_groups import DATASETS
from runner.schema_models import MODELS, TASKS

MODEL_FOR = {"mask": "unet", "sequence": "lstm", "next": "lstm", "forecast": "lstm", "image": "resnet"}
# What a file of conf/ leaves to the user, and what else an option needs to make sense.
NEEDED = {
    "model=unet": ["dataset=digits"],
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


FAMILIES = {**GROUPS, **{f"model={name}": kind for name, kind in MODELS.items()}} | {
    f"dataset={name}": kind for name, kind in DATASETS.items()
}


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


VIEWS = {
    ("resnet", "digits"): "image",
    ("unet", "digits"): "mask",
    ("lstm", "digits"): "sequence",
    ("custom", "digits"): "image",
    ("resnet", "cifar10"): "image",
    ("unet", "mask_folder"): "mask",
    ("lstm", "text"): "next",
    ("lstm", "series"): "forecast",
    ("resnet", "synthetic"): "image",
    ("unet", "synthetic"): "mask",
    ("lstm", "synthetic"): "sequence",
    ("resnet_cifar", "digits"): "image",
    ("convolution", "synthetic"): "image",
    ("layer", "text"): None,
    ("custom", "text"): "next",
    ("unet", "cifar10"): None,
    ("lstm", "cifar10"): None,
    ("resnet", "text"): None,
    ("resnet", "mask_folder"): None,
    ("unet", "image_folder"): None,
    ("lstm", "mask_folder"): None,
    ("unet", "series"): None,
}


@pytest.mark.parametrize(("model", "dataset"), VIEWS)
def test_a_model_works_on_the_first_view_that_both_know_or_is_refused(model: str, dataset: str) -> None:
    words = [f"model={model}", f"dataset={dataset}"]
    words += [word for option in words for word in NEEDED.get(option, []) if "=digits" not in word]
    view = VIEWS[model, dataset]
    if view is None:
        with pytest.raises(ConfigError, match=dataset):
            settings(*words)
    else:
        assert view_of(settings(*words)) == view
        assert cell_config(settings(*words))["dataset"]["view"] == view


def test_a_view_that_is_asked_for_is_taken() -> None:
    assert view_of(settings("model=lstm", "dataset=synthetic", "dataset.view=forecast")) == "forecast"


def test_a_network_that_reads_backwards_is_refused_for_the_next_character_only() -> None:
    words = ["model=lstm", "model.bidirectional=true", "dataset=synthetic"]
    assert settings(*words, "dataset.view=sequence").model.bidirectional
    with pytest.raises(ConfigError, match=r"model\.bidirectional"):
        settings(*words, "dataset.view=next")


def test_steps_and_epochs_exclude_each_other() -> None:
    assert settings("train.epochs=2").train.epochs == 2
    with pytest.raises(ConfigError, match=r"train\.epochs=2.*train\.steps"):
        settings("train.epochs=2", "train.steps=5")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train.nesterov=true", "train.momentum=0"], "train.nesterov=True: needs train.momentum above 0"),
        (["train.warmup_steps=5", "train.steps=4"], "train.warmup_steps=5: at most train.steps=4"),
        (["train.poke=ulp", "train.poke_step=5", "train.steps=4"], "train.poke_step=5: at most train.steps=4"),
        (["train.schedule=step"], "train.decay_every=None: goes with train.schedule=step"),
        (["train.decay_every=5"], "train.decay_every=5: goes with train.schedule=step"),
        (["train.schedule=one_cycle", "train.warmup_steps=2"], "train.warmup_steps=2: train.schedule=one_cycle has"),
        (["train.clip_norm=0"], "train.clip_norm=0.0: would take all gradients away"),
    ],
)
def test_a_training_that_there_cannot_be_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(*words)
    assert str(refused.value).startswith(said)
    settings(*words[:-1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["probe=ops", "train.compile=default"], "probe=ops: sees nothing inside a model under train.compile=default"),
        (["probe=modules", "probe.repeat=true"], "probe.repeat=True: repeats operations, and probe=modules sees none"),
        (["probe.repeat=true"], "probe.repeat=True: repeats operations, and probe=none sees none"),
        (["probe=kernels", "train.steps=2"], "probe.steps=3: that step is profiled: at most train.steps=2"),
        (["repeat_in_process=2", "probe=modules"], "repeat_in_process=2: must be 1 with probe=modules"),
        (["repeat_in_process=3", "phase=infer"], "repeat_in_process=3: must be 1 with phase=infer; take phase=train"),
    ],
)
def test_a_probe_that_could_see_nothing_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(*words)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "words",
    [
        ["probe=modules", "train.compile=max-autotune"],
        ["probe=kernels", "train.compile=default", "train.steps=3"],
        ["probe=kernels", "train.epochs=1"],
        ["probe=ops", "probe.repeat=true", "probe.steps=100", "train.steps=2"],
        ["probe=ops", "phase=infer"],
        ["repeat_in_process=2", "seeds=all", "train.compile=default"],
    ],
)
def test_a_probe_that_sees_something_is_not(words: list[str]) -> None:
    settings(*words)


ELSEWHERE = ["tracking=off", "trial.number=3", "trial.position=2", "study=there", "trials=9", "timeout=60"]
ELSEWHERE += ["retry=none", "exclusive=false", "plan.steps=500", "budget=10min", "recipe_size=smoke"]


@pytest.mark.parametrize("word", ELSEWHERE)
def test_where_when_and_how_often_do_not_make_another_cell(word: str) -> None:
    assert cell_config(settings(word)) == cell_config(settings())
    assert settings(word) != settings()


@pytest.mark.parametrize("word", ["plan.steps=999999999999", "plan.runs=999999999", "plan.price_per_hour=999999999"])
def test_the_largest_plan_is_one(word: str) -> None:
    key, value = word.removeprefix("plan.").split("=")
    assert getattr(settings(word).plan, key) == int(value)


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
    ("word", "named"),
    [
        ("attach.command=[]", "attach.command"),
        ("precision=bf16", "precision"),
        ("probe=ops", "probe"),
        ("seeds=init", "seeds.vary"),
    ],
)
def test_what_an_attached_script_cannot_be_asked_is_refused(word: str, named: str) -> None:
    words = {"phase": "attach", "attach.command": "[python,train.py]", "precision": "default"}
    with pytest.raises(ConfigError, match=f"^{named}"):
        settings(*(f"{key}={value}" for key, value in (words | dict([word.split("=", 1)])).items()))


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
