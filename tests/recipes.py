"""Recipes for tests: rows as their files have them, and the recipes that are shipped."""

from pathlib import Path
from typing import Any

import numpy as np
from composed import CONF
from data_files import picture
from sklearn.datasets import load_digits

from runner.recipe import Published, Recipe, Replication

SHIPPED = sorted(path.stem for path in (CONF / "recipe").glob("*.yaml"))

ROW: dict[str, Any] = {
    "claim": "it is slower",
    "quantity": "step_time_ratio",
    "cell": {"cudnn": "deterministic"},
    "over": {"cudnn": "default"},
    "value": 1.2,
    "unit": "ratio",
    "source": "table 1",
    "read": True,
}


def make_row(**changes: Any) -> Published:
    """One published figure; what compares no cells needs `over={}`."""
    return Published(**ROW | changes)


def make_replication(*rows: Published, **changes: Any) -> Replication:
    """A recipe with these rows as a study carries it out; keyword arguments replace fields of the replication."""
    recipe = Recipe(
        name="planted",
        title="A planted claim",
        citation="Planted et al. 2020",
        measured="a time",
        measured_on="a GPU of 2020",
        protocol="the same",
        published=list(rows),
    )
    return Replication(**{"recipe": recipe, "size": "full", "trials": 5, "changed": []} | changes)


def digits_in_a_folder(folder: Path) -> Path:
    """A hundred of scikit-learn's digits as 32x32 pictures: train/CLASS/N.png and test/CLASS/N.png."""
    digits = load_digits()
    for index, (pixels, label) in enumerate(zip(digits.images[:100], digits.target, strict=False)):
        enlarged = np.kron(pixels, np.ones((4, 4))) * 15
        part = "test" if index % 5 == 4 else "train"
        picture(folder / part / str(label) / f"{index}.png", enlarged.astype(np.uint8))
    return folder


def discs_in_a_folder(folder: Path) -> Path:
    """Ten 64x64 pictures of discs, each with its mask: images/N.png and masks/N.png."""
    rows, columns = np.mgrid[:64, :64]
    for index in range(10):
        disc = (rows - 3 * index - 15) ** 2 + (columns - 32) ** 2 < 150
        picture(folder / "images" / f"{index}.png", np.where(disc, 200, 40).astype(np.uint8))
        picture(folder / "masks" / f"{index}.png", np.where(disc, 255, 0).astype(np.uint8))
    return folder


def stand_in(recipe: str, folder: Path) -> list[str]:
    """The words that put small data made here in the place of a recipe's own, which are not there."""
    text = (CONF / "recipe" / f"{recipe}.yaml").read_text(encoding="utf-8")
    if "override /dataset: cifar10" in text:
        return ["dataset=image_folder", f"dataset.root={digits_in_a_folder(folder / 'digits')}"]
    masks = "override /dataset: mask_folder" in text
    return [f"dataset.root={discs_in_a_folder(folder / 'discs')}"] if masks else []
