"""Cells: their ids, their labels, and what tells them apart."""

import random
from typing import Any

import pytest
from factory import make_cell
from hypothesis import given
from hypothesis import strategies as st

from runner.cell import Cell, difference, flatten, labels, varying

values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers())
configs = st.dictionaries(st.text(), values | st.dictionaries(st.text(), values, max_size=4), min_size=1, max_size=5)


def shuffled(value: Any, order: random.Random) -> Any:
    """The same settings with the keys of every level in another order."""
    if not isinstance(value, dict):
        return value
    keys = order.sample(list(value), len(value))
    return {key: shuffled(value[key], order) for key in keys}


@given(configs, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_change_an_id(config: dict[str, Any], order: random.Random) -> None:
    assert Cell(shuffled(config, order)).id == Cell(config).id


@given(configs, st.data())
def test_another_value_gives_another_id(config: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(list(config)))
    changed = config | {key: {"": config[key]}}
    assert Cell(changed).id != Cell(config).id


def test_true_and_one_are_different_settings() -> None:
    assert len({Cell({"value": value}).id for value in (True, 1, "1", "true", None, "null")}) == 6


def test_an_id_is_the_same_in_every_version() -> None:
    cell = Cell({"b": {"d": [1, "é"], "c": None}, "a": True, "f": 0.0005})
    assert cell.id == "e1e7ebd63363"


def test_flat_keys_are_dotted_and_empty_groups_stay() -> None:
    config = {"a": {"b": {"c": 1}, "d": []}, "e": {}, "f": None}
    assert flatten(config) == {"a.b.c": 1, "a.d": [], "e": {}, "f": None}


def test_the_pair_is_not_what_varies() -> None:
    assert varying([make_cell("default"), make_cell("benchmark")]) == []


def test_a_single_cell_is_labelled_with_its_mode() -> None:
    cell = make_cell("deterministic")
    assert labels([cell]) == {cell.id: "deterministic (T,F)"}


def test_a_label_tells_what_varies_and_nothing_else() -> None:
    cells = [make_cell("default", precision=name) for name in ("fp32", "bf16")]
    assert list(labels(cells).values()) == ["default (F,F), precision=fp32", "default (F,F), precision=bf16"]


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), ([1, 2], "[1,2]"), ("", "")])
def test_a_label_shows_values_as_they_are_typed(value: Any, text: str) -> None:
    cell, other = make_cell(steps=value), make_cell(steps=7)
    assert labels([cell, other])[cell.id] == f"default (F,F), steps={text}"


def test_a_group_is_told_by_its_name_where_that_suffices() -> None:
    cells = [make_cell(model={"name": "resnet", "depth": 18}), make_cell(model={"name": "lstm", "layers": 2})]
    assert [label.partition(", ")[2] for label in labels(cells).values()] == ["model=resnet", "model=lstm"]


def test_a_group_is_told_in_full_where_its_name_does_not_suffice() -> None:
    models = [{"name": "resnet", "depth": 18}, {"name": "resnet", "depth": 50}, {"name": "lstm", "layers": 2}]
    found = [label.partition(", ")[2] for label in labels([make_cell(model=model) for model in models]).values()]
    assert found == ["model.depth=18, model=resnet", "model.depth=50, model=resnet", "model.layers=2, model=lstm"]


def test_labels_of_different_cells_differ() -> None:
    settings = [{"precision": name, "model": {"name": "resnet", "depth": depth}} for name in "ab" for depth in (18, 50)]
    cells = [make_cell(mode, **others) for mode in ("default", "benchmark") for others in settings]
    assert list(labels(cells)) == [cell.id for cell in cells]
    assert len(set(labels(cells).values())) == 8


LATER = "a study of another version"


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [
        ({}, {"phase": "train"}, f"phase is not set there ({LATER}), train here"),
        ({"train": {"steps": 5}}, {"train": {"steps": 5, "compile": "off"}}, f"not set there ({LATER}), off here"),
        ({}, {"model": {"name": "resnet", "depth": 18, "stem": 1}}, f"model.stem is not set there ({LATER}), 1 here"),
        ({"phase": "train"}, {}, "phase is train there, not set here"),
        ({"precision": "bf16"}, {}, "precision is bf16 there, fp32 here"),
        ({}, {"model": {"name": "lstm", "layers": 2}}, "model.layers is not set there, 2 here; model.name is resnet"),
        (
            {"model": {"name": "custom", "args": {"a": 1}}},
            {"model": {"name": "custom", "args": {"a": 1, "b": 2}}},
            "model.args.b is not set there, 2 here",
        ),
    ],
)
def test_a_key_that_a_study_lacks_tells_of_another_version(
    there: dict[str, Any], here: dict[str, Any], said: str
) -> None:
    assert said in difference([make_cell(**there)], [make_cell(**here)])
