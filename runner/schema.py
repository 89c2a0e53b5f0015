"""The settings as types: every key of conf/ with its type, its bounds and the combinations that make sense.

A DictConfig comes in, frozen dataclasses go out; after this module no DictConfig travels.
"""

import json
import math
import pickle
import re
from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, MissingMandatoryValue, OmegaConfBaseException

from runner.duration import seconds_of
from runner.errors import ConfigError
from runner.jsonfile import canonical
from runner.plan import Plan
from runner.recipe import Published, Recipe, check_row
from runner.schema_attach import Attach
from runner.schema_datasets import DATASETS
from runner.schema_groups import Calling, Cudnn, Determinism, Place, Precision, Probe, Seeds, Tracking, Train
from runner.schema_models import MODELS
from runner.schema_pairs import check_pairs
from runner.settings import Scalars, Settings

Group = TypeVar("Group")

GROUPS: dict[str, Any] = {
    "cudnn": Cudnn,
    "precision": Precision,
    "determinism": Determinism,
    "seeds": Seeds,
    "probe": Probe,
    "train": Train,
    "calls": Calling,
    "attach": Attach,
    "plan": Plan,
    "tracking": Tracking,
    "trial": Place,
}


def load(config: DictConfig) -> Settings:
    """Turn a composed config into settings. Raises ConfigError naming the key, the value and what is allowed."""
    try:
        given = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = error.full_key or "config"
        raise ConfigError(
            key, "???", f"is not set or cannot be resolved ({_first(error)}); give it as {key}=VALUE"
        ) from error
    assert isinstance(given, dict)
    values: dict[str, Any] = {str(key): value for key, value in given.items()}
    for key in (*GROUPS, "model", "dataset"):
        if key not in values:
            raise ConfigError(key, "(deleted)", "is needed; leave it in")
    groups = {key: _typed(group, values.pop(key), f"{key}.") for key, group in GROUPS.items()}
    groups["model"] = _family("model", values.pop("model"), MODELS)
    groups["dataset"] = _family("dataset", values.pop("dataset"), DATASETS)
    for key, group in groups.items():
        _check_bounds(group, f"{key}.")
    groups["recipe"] = _recipe(values.pop("recipe", None))
    scalars = _typed(Scalars, values, "")
    _check_bounds(scalars, "")
    settings = Settings(**groups, **asdict(scalars))
    if settings.device == "mps":
        raise ConfigError("device", "mps", "has no cuDNN, so that no flag acts there; choose auto, cpu, cuda or all")
    if not re.fullmatch(r"auto|cpu|all|cuda(:\d+)?", settings.device):
        raise ConfigError("device", settings.device, "choose one of auto, cpu, cuda, cuda:0, cuda:1, ..., all")
    check_pairs(settings)
    if settings.budget is not None:
        seconds_of(settings.budget)
    return settings


def _family(key: str, values: Any, families: dict[str, Any]) -> Any:
    name = values.get("name") if isinstance(values, dict) else values
    if name not in families:
        raise ConfigError(f"{key}.name", name, f"choose one of {', '.join(families)}")
    return _typed(families[name], values, f"{key}.")


def _recipe(values: Any) -> Recipe | None:
    return None if values is None else _checked_recipe(pickle.dumps(values))


@lru_cache(maxsize=4)  # all cells of a study have the same one, and its rows take longer than the rest of a cell
def _checked_recipe(pickled: bytes) -> Recipe:
    values = pickle.loads(pickled)
    rows = values.get("published") if isinstance(values, dict) else None
    if not isinstance(rows, list):
        raise ConfigError("recipe.published", rows, "a list of published figures is needed; see docs/recipes.md")
    published = []
    for index, row in enumerate(rows):
        prefix = f"recipe.published[{index}]."
        published.append(_typed(Published, row, prefix))
        _check_bounds(published[-1], prefix)
        check_row(published[-1], prefix)
    return replace(_typed(Recipe, values | {"published": []}, "recipe."), published=published)


def _typed(group: type[Group], values: Any, prefix: str) -> Group:
    if not isinstance(values, dict):
        raise ConfigError(prefix.rstrip("."), values, f"a group with the keys {_names(group)} is needed")
    node = OmegaConf.structured(group)
    OmegaConf.set_readonly(node, False)  # frozen classes come read-only; filling them once is what this is for
    try:
        result = OmegaConf.to_object(OmegaConf.merge(node, values))
    except ConfigKeyError as error:
        key = str(error.full_key)
        said = f"no such key{_meant(key)}; there are {_names(group)}"
        raise ConfigError(f"{prefix}{key}", values.get(key), said) from error
    except MissingMandatoryValue as error:
        missing = next(item.name for item in fields(group) if item.name not in values)  # type: ignore[arg-type]
        raise ConfigError(f"{prefix}{missing}", "(deleted)", "is needed; leave it in") from error
    except OmegaConfBaseException as error:
        key = error.full_key or ""
        raise ConfigError(f"{prefix}{key}", values.get(key.split("[")[0]), _first(error)) from error
    for item in fields(group):  # type: ignore[arg-type]
        if item.type is bool and type(values.get(item.name)) is int and values[item.name] not in (0, 1):
            raise ConfigError(f"{prefix}{item.name}", values[item.name], "must be true or false")
    return result  # type: ignore[return-value]


def _first(error: Exception) -> str:
    return str(error).splitlines()[0]


def _meant(key: str) -> str:
    """The keys of that name in any group, since Hydra's own advice after `steps=10` is `+steps=10`."""
    families = [("model", one) for one in MODELS.values()] + [("dataset", one) for one in DATASETS.values()]
    owners = dict.fromkeys(name for name, group in [*GROUPS.items(), *families] if key in _names(group).split(", "))
    there = " or ".join(f"{name}.{key}" for name in owners if name != "trial")  # which no one may set
    return f" (did you mean {there}?)" if there else ""


def _names(group: Any) -> str:
    return ", ".join(item.name for item in fields(group))


def _check_bounds(group: Any, prefix: str) -> None:
    for item in fields(group):
        value, bounds = getattr(group, item.name), item.metadata
        if value is None:
            continue
        if isinstance(value, dict) and json.loads(canonical(value)) != value:
            allowed = "text, finite numbers, true, false, null, and lists and objects of these, with text as keys"
            raise ConfigError(f"{prefix}{item.name}", value, f"is handed on as JSON: {allowed}")
        for one in value if isinstance(value, list) else [value]:
            if "one_of" in bounds and one not in bounds["one_of"]:
                choices = ", ".join(str(choice) for choice in bounds["one_of"])
                raise ConfigError(f"{prefix}{item.name}", one, f"choose one of {choices}")
            if isinstance(one, float) and not math.isfinite(one):
                raise ConfigError(f"{prefix}{item.name}", one, "must be a finite number")
            if "least" in bounds and one < bounds["least"]:
                raise ConfigError(f"{prefix}{item.name}", one, f"must be at least {bounds['least']}")
            if "below" in bounds and one >= bounds["below"]:
                raise ConfigError(f"{prefix}{item.name}", one, f"must be below {bounds['below']}")
