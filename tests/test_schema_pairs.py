"""Settings that do not go together are refused, though each of them is right; the others are taken."""

import pytest
from composed import settings
from test_schema import NEEDED

from runner.errors import ConfigError
from runner.settings import cell_config, view_of

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
