"""A cell: one complete condition, and how cells of a study are told apart."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.jsonfile import canonical
from runner.mode import mode_text


@dataclass(frozen=True)
class Cell:
    """One complete condition: the resolved settings without what only says where, when or how often."""

    config: dict[str, Any]

    @cached_property
    def id(self) -> str:
        """A short stable name: the digest of the settings' canonical JSON."""
        return hashlib.sha256(canonical(self.config).encode()).hexdigest()[:12]

    @property
    def phase(self) -> str:
        """What a step is: "train" a training step, as in older studies, "infer" one batch answered, "calls" a call."""
        return str(self.config.get("phase", "train"))

    @property
    def probe(self) -> str:
        """What looks into the steps, which changes their times: "none", as in every older study, or its name."""
        return str(self.config.get("probe", {}).get("name", "none"))

    @property
    def poked(self) -> bool:
        """Whether each of its trials has another weight changed on purpose."""
        return bool(self.config.get("train", {}).get("poke", "none") != "none")


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys: {"cudnn": {"enabled": True}} -> {"cudnn.enabled": True}."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def difference(there: list[Cell], here: list[Cell]) -> str:
    """In words, how the cells of a study differ from those that are asked for now."""
    keys = sorted({key for cell in (*there, *here) for key in flatten(cell.config)})
    values = {key: [_values(key, cells) for cells in (there, here)] for key in keys}
    versions = {key: " (a study of another version)" if _later(key, there, here) else "" for key in keys}
    parts = [f"{key} is {old} there{versions[key]}, {new} here" for key, (old, new) in values.items() if old != new]
    return "; ".join(parts) or f"it has {len(there)} cells, now {len(here)} are asked for, in other combinations"


def _later(key: str, there: list[Cell], here: list[Cell]) -> bool:
    """Whether a key came with a later version than that of the cells there.

    What else they may lack are the keys of another model or data set, and what a user gives to one of his own.
    """
    group, *inner = key.split(".")
    name = f"{group}.name"
    alike = group not in ("model", "dataset") or _values(name, there) == _values(name, here)
    return _values(key, there) == "not set" and alike and "args" not in inner


def _values(key: str, cells: list[Cell]) -> str:
    flats = [flatten(cell.config) for cell in cells]
    return ",".join(sorted({_short(flat[key]) for flat in flats if key in flat})) or "not set"


PAIR = ("cudnn.deterministic", "cudnn.benchmark")


def varying(cells: list[Cell]) -> list[str]:
    """The dotted keys, the pair apart, whose value is not the same in all cells."""
    flats = [flatten(cell.config) for cell in cells]
    keys = sorted(set().union(*flats) - set(PAIR))
    return [key for key in keys if len({canonical(flat.get(key)) for flat in flats}) > 1]


def labels(cells: list[Cell]) -> dict[str, str]:
    """For each cell's id its label: the mode, then what else varies among these cells.

    A group that varies as a whole (model, dataset) is told by its name alone as long as that tells cells apart.
    """
    keys = varying(cells)
    named = {key.split(".")[0] for key in keys if key.endswith(".name")}
    short = [key for key in keys if key.split(".")[0] not in named or key.endswith(".name")]
    for chosen in (short, keys):
        result = {cell.id: _label(cell, chosen) for cell in cells}
        if len(set(result.values())) == len(result):
            break
    return result


def _label(cell: Cell, keys: list[str]) -> str:
    flat = flatten(cell.config)
    extra = [f"{key.removesuffix('.name')}={_short(flat[key])}" for key in keys if key in flat]
    return ", ".join([mode_text(cell.config["cudnn"]), *extra])


def _short(value: Any) -> str:
    return canonical(value).strip('"')
