"""docs/keys.md and the settings: each has every key of the other."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from documented import ROOT

from runner.schema import GROUPS
from runner.schema_datasets import DATASETS
from runner.settings import Scalars

PAGE = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_]+(?:\.[a-z0-9_]+)?)`", PAGE))


def keys() -> Iterator[str]:
    """Every key but those of one model or data set alone; a group stands for its key `name`, which an option sets."""
    groups = {group: _names(kind) for group, kind in GROUPS.items()}
    groups["dataset"] = set.intersection(*map(_names, DATASETS.values()))
    yield from {"model", "recipe"} | _names(Scalars)
    yield from (group if name == "name" else f"{group}.{name}" for group, names in groups.items() for name in names)


def _names(group: Any) -> set[str]:
    return {item.name for item in fields(group)}


KEYS = set(keys())


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_is_named(key: str) -> None:
    assert key in NAMED


def test_what_the_tables_name_is_a_key() -> None:
    first = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {key for cell in first for key in re.findall(r"`([^`]+)`", cell)}
    assert len(named) > 40
    assert named <= KEYS | set(GROUPS)
