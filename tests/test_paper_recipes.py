"""The recipes of papers: what they ask for, what they refuse, and what comes out of one at its smallest."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from composed import composed
from conftest import study as done
from factory import make_cell
from recipes import SHIPPED, make_replication, stand_in
from test_recipe import asked

from runner.analysis.quantity import settings_of
from runner.analysis.summary import summarise
from runner.door import settle
from runner.errors import ConfigError, StudyError
from runner.layout import logits_file
from runner.logits import Logits
from runner.recipe import Replication
from runner.report.chain import chain
from runner.report.markdown import markdown
from runner.study import Study

CIFAR = ["summers2021", "zhuang2022_noise", "eryilmaz2024", "jordan2023"]
# A change that contradicts the protocol, and how the report names it.
CONTRADICTED = {
    "summers2021": ("train.batch_size=16", "train.batch_size=16 (recipe: 8)"),
    "zhuang2022_noise": ("train.optimizer=sgd", "train.optimizer=sgd (recipe: adam)"),
    "eryilmaz2024": ("train.schedule=constant", "train.schedule=constant (recipe: cosine)"),
    "jordan2023": ("precision=fp32", "precision=fp32 (recipe: tf32)"),
    "unet_repeatability": ("model.width=8", "model.width=8 (recipe: 4)"),
    "lstm_dropout": ("model.cell=gru", "model.cell=gru (recipe: lstm)"),
}


def test_all_of_them_are_shipped() -> None:
    assert set(CONTRADICTED) <= set(SHIPPED)


@pytest.mark.parametrize("name", CIFAR)
def test_missing_pictures_are_refused_with_every_way_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells, _ = asked(f"recipe={name}", "recipe_size=smoke", kept=False)
    with pytest.raises(ConfigError) as refused:
        settle(cells, composed())
    ways = ("dataset.download=true", "dataset=image_folder dataset.root=FOLDER")
    for words in (f"recipe={name} needs dataset=cifar10", "cifar-10-batches-py", *ways):
        assert words in str(refused.value)


def test_missing_masks_are_refused_with_their_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells, _ = asked("recipe=unet_repeatability", "recipe_size=smoke", kept=False)
    with pytest.raises(ConfigError) as refused:
        settle(cells, composed())
    for words in ("recipe=unet_repeatability needs dataset=mask_folder", "images/NAME and masks/NAME", "dataset.root="):
        assert words in str(refused.value)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_what_contradicts_the_protocol_is_named(name: str) -> None:
    word, named = CONTRADICTED[name]
    _, kept = asked(f"recipe={name}", "recipe_size=smoke", word, "device=cpu")
    assert kept["changed"] == [named]


def test_a_folder_in_the_place_of_cifar_is_named_with_its_number_of_images(tmp_path: Path) -> None:
    words = stand_in("zhuang2022_noise", tmp_path)
    _, kept = asked("recipe=zhuang2022_noise", "recipe_size=smoke", *words)
    assert kept["changed"] == ["dataset=image_folder with 100 images (recipe: cifar10)"]


def cells_of(name: str, size: str) -> list[dict[str, Any]]:
    cells, _ = asked(f"recipe={name}", f"recipe_size={size}", kept=False)
    return [settings_of(one.cell.config) for one in cells]


def test_summers_has_nine_sources_and_fewer_where_it_is_reduced() -> None:
    full, reduced = cells_of("summers2021", "full"), cells_of("summers2021", "reduced")
    assert (len(full), len(reduced)) == (9, 6)
    assert [one["seeds"] for one in full].count("fixed") == 3
    assert {one["seeds"] for one in reduced} == {"fixed", "init", "order", "augment"}
    assert {(one["train.epochs"], one["train.warmup_steps"]) for one in full} == {(500, 3 * (50_000 // 512))}
    assert all(one["train.keep_logits"] for one in full)


def test_eryilmaz_removes_the_noise_by_everything_at_once() -> None:
    found = cells_of("eryilmaz2024", "full")
    assert len(found) == 20
    assert {(one["cudnn"], one["determinism.algorithms"], one["determinism.workspace"]) for one in found} == {
        ("benchmark", False, None),
        ("deterministic", True, ":4096:8"),
    }
    assert {(one["train.optimizer"], one["train.weight_decay"]) for one in found} == {("sgd", 0.0005), ("adam", 0.0)}


def test_jordan_pokes_a_training_of_as_many_steps_as_the_one_beside_it() -> None:
    for size in ("full", "reduced"):
        found = [one for one in cells_of("jordan2023", size) if one["seeds"] == "fixed"]
        assert len({one["train.steps"] for one in found}) == 1
        assert [one["train.poke"] for one in found] == ["none", "scale", "scale", "scale"]
        assert all(one["train.poke_step"] <= one["train.steps"] for one in found)


def test_of_the_unet_only_what_the_paper_says_can_agree_or_differ() -> None:
    _, kept = asked("recipe=unet_repeatability", "recipe_size=reduced", "dataset.root=nowhere", "device=cuda")
    sizes = {(row["source"], row["cell"]["model.upsampling"]): row["sizes"] for row in kept["recipe"]["published"]}
    assert sizes["the paper's abstract", "transposed"] == ["full", "reduced"]
    assert sizes["the paper's abstract", "bilinear"] == []
    assert sizes["PyTorch 2.11, torch/nn/functional.py", "bilinear"] == ["full", "reduced"]


@pytest.fixture(scope="module")
def summers(module_folder: Path) -> Study:
    """Four sources with two trials each at the smallest size."""
    words = ["recipe=summers2021", "recipe_size=smoke", "cudnn=deterministic", "seeds=fixed,init"]
    small = ["device=cpu", "threads=1", *stand_in("summers2021", module_folder)]
    return done(*words, *small, folder=module_folder)


def test_the_control_repeats_and_what_is_poked_was_changed_on_purpose(summers: Study) -> None:
    summary = summarise(summers)
    found = {(one["config"]["train"]["poke"], *one["config"]["seeds"]["vary"]): one for one in summary["cells"]}
    assert set(found) == {("none",), ("none", "init"), ("ulp",), ("ulp", "init")}
    assert found["none",]["reproducibility"]["verdict"] == "bitwise"
    assert found["none",]["ensemble"] == found["none",]["ensemble"] | {"gain": 0.0, "pearson": 1.0, "spearman": 1.0}
    assert found["none", "init"]["ensemble"]["pearson"] < 0.999
    poked = found["ulp",]["reproducibility"]
    assert (poked["verdict"], poked["poked"], poked["seeds_varied"]) == ("differs", True, [])
    assert markdown(summary).count("each trial was changed on purpose") >= 2
    assert "weights differ, 2 different of 2 (each trial was changed on purpose)" in markdown(summary)


def test_why_says_that_it_was_changed_and_looks_no_deeper(summers: Study) -> None:
    summary = summarise(summers)
    asked_for = summers.asked()
    (cell,) = [one for one in summary["cells"] if one["label"].count("poke=ulp") and one["label"].count("[]")]
    lines = "\n".join(chain({**summary, "cells": [cell]}, asked_for["command"], ""))
    assert "by design each trial was changed on purpose" in lines


def test_every_trial_kept_its_logits_which_give_its_accuracy(summers: Study) -> None:
    for record in summers.records():
        found = Logits.read(logits_file(summers.trial_folder(record.cell, record.number)))
        accuracy = float((found.values.argmax(axis=1) == found.targets).mean())
        assert accuracy == pytest.approx(record.metrics["accuracy"])
        assert found.values.shape == (20, 10)


def test_the_report_has_the_measured_error_and_says_what_it_is(summers: Study) -> None:
    text = summers.report_markdown.read_text()
    section = text.partition("## Published beside measured")[2].partition("\n## ")[0]
    assert "0.22 \u00b1 0.02 %, 100 trials" in section
    assert "bootstrap error (10,000 resamples)" in section
    assert "dataset=image_folder with 100 images (recipe: cifar10)" in section


def test_a_study_begins_to_follow_a_recipe_when_it_is_continued_with_one(
    module_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    _, kept = asked("recipe=lstm_dropout", "recipe_size=smoke")
    cells = [one.cell for one in asked("recipe=lstm_dropout", "recipe_size=smoke", kept=False)[0]]
    folder = module_folder / "continued"
    Study.ask(folder, {"rounds": 2}, cells)
    assert summarise(Study.open(folder))["recipe"] is None
    Study.ask(folder, {"rounds": 2, "recipe": kept}, cells)
    found = summarise(Study.open(folder))["recipe"]
    assert found["name"] == "lstm_dropout" and {row["verdict"] for row in found["rows"]} == {"not comparable"}
    Study.ask(folder, {"rounds": 3}, cells)
    assert Study.open(folder).asked()["recipe"]["recipe"]["name"] == "lstm_dropout"


def named(name: str, size: str) -> Replication:
    """What a study keeps of a recipe of this name."""
    made = make_replication(size=size)
    return replace(made, recipe=replace(made.recipe, name=name))


@pytest.mark.parametrize("other", ["recipe=lstm_dropout recipe_size=full", "recipe=another recipe_size=smoke"])
def test_a_study_follows_one_recipe_at_one_size(other: str, tmp_path: Path) -> None:
    name, size = (word.partition("=")[2] for word in other.split())
    cells, first = make_cell(), asdict(named("lstm_dropout", "smoke"))
    Study.ask(tmp_path / "study", {"rounds": 2, "recipe": first}, [cells])
    before, second = (tmp_path / "study" / "study.json").read_bytes(), asdict(named(name, size))
    with pytest.raises(StudyError) as refused:
        Study.ask(tmp_path / "study", {"rounds": 2, "recipe": second}, [cells])
    assert f"follows recipe=lstm_dropout recipe_size=smoke, not {other}; ask for that" in str(refused.value)
    assert (tmp_path / "study" / "study.json").read_bytes() == before
