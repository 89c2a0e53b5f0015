"""Recipes for tests: rows as their files have them, and the recipes that are shipped."""

from typing import Any

from composed import CONF

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
