"""From the command line to the cells of a study: what Hydra's sweep words mean, and which cells are asked for."""

import itertools
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

from runner import schema
from runner.cell import Cell, flatten
from runner.dataset_files import count_images
from runner.errors import ConfigError
from runner.jsonfile import canonical
from runner.recipe import Replication
from runner.settings import Settings, cell_config


@dataclass(frozen=True)
class Asked:
    """A cell as it was asked for: the overrides that lead to it, and its settings."""

    overrides: tuple[str, ...]
    settings: Settings

    @property
    def cell(self) -> Cell:
        """The cell that the settings describe."""
        return Cell(cell_config(self.settings))


def expand(arguments: list[str], config: DictConfig, loader: ConfigLoader) -> list[Asked]:
    """Every combination of what the command line sweeps over, each composed and validated once.

    What a recipe sweeps over comes on top, but for the keys that the command line gives. Raises ConfigError for a key
    given twice, a pattern that matches nothing, and whatever the schema refuses; Hydra's own errors pass.
    """
    parser = OverridesParser.create(config_loader=loader)
    overrides = parser.parse_overrides(arguments)
    keys = [str(item.get_key_element()) for item in overrides]
    for item in overrides:
        if item.key_or_group in ("recipe", "recipe_size") and item.is_sweep_override():
            raise ConfigError(item.key_or_group, _said(item), "a study follows one recipe at one size; give one value")
        if item.key_or_group.split(".")[0] == "trial":
            raise ConfigError(item.key_or_group, _said(item), "is set by the sweep; ask for more rounds with trials=N")
        if keys.count(item.get_key_element()) > 1:
            raise ConfigError(item.key_or_group, _said(item), "is given more than once; give it once")
    choices: list[list[tuple[str, ...]]] = [[(word,) for word in _choices(item, loader)] for item in overrides]
    choices += _axes(config, {item.key_or_group for item in overrides}, parser, loader)
    cells = []
    for chosen in itertools.product(*choices):
        words = tuple(itertools.chain.from_iterable(chosen))
        composed = loader.load_sweep_config(master_config=config, sweep_overrides=list(words))
        own = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
        cells.append(Asked(words, schema.load(own)))
    return cells


def _axes(
    config: DictConfig, given: set[str], parser: OverridesParser, loader: ConfigLoader
) -> list[list[tuple[str, ...]]]:
    """What a recipe sweeps over (hydra.sweeper.params), each axis as its choices of words; keys that are given win.

    An axis is sweep words by key, or a list of rows by any name: each row is the words of one choice.
    """
    axes: list[list[tuple[str, ...]]] = []
    for name, value in (config.hydra.sweeper.params or {}).items():
        if isinstance(value, ListConfig):
            rows = [tuple(word for word in str(row).split() if _key(word) not in given) for row in value]
            axes.append(list(dict.fromkeys(rows)))
        elif name not in given:
            (item,) = parser.parse_overrides([f"{name}={value}"])
            axes.append([(word,) for word in _choices(item, loader)])
    return axes


# What says where a cell is measured, not what is: no recipe's definition depends on it.
WHERE = ("device", "threads", "isolation", "dataset.root", "dataset.download")


def replication(arguments: list[str], asked: list[Asked], config: DictConfig, loader: ConfigLoader) -> dict[str, Any]:
    """What study.json keeps of the recipe that the command line asks for; nothing without one."""
    settings = asked[0].settings
    if settings.recipe is None:
        return {}
    own = expand([word for word in arguments if _key(word) in ("recipe", "recipe_size")], config, loader)
    found = Replication(
        recipe=settings.recipe,
        size=settings.recipe_size,
        trials=own[0].settings.trials,
        changed=_changed(asked, own),
    )
    return {"recipe": asdict(found)}


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")


def _changed(asked: list[Asked], own: list[Asked]) -> list[str]:
    """The values that none of a recipe's own cells has: "train.epochs=3 (recipe: 100)"; of another group its name."""
    here, there = _values(asked), _values(own)
    new = {key: values - there.get(key, set()) for key, values in here.items() if key not in WHERE}
    named = {key.split(".")[0] for key, values in new.items() if values and key.endswith(".name")}
    return [
        f"{key.removesuffix('.name')}={_listed(values)}{_images(key, asked)} (recipe: {_listed(there.get(key, set()))})"
        for key, values in new.items()
        if values and (key.endswith(".name") or key.split(".")[0] not in named)
    ]


def _images(key: str, asked: list[Asked]) -> str:
    """How many images a folder holds that stands in for another data set: a part of it is another measurement."""
    roots = {one.settings.dataset.root for one in asked if one.settings.dataset.name == "image_folder"}
    if key != "dataset.name" or not roots:
        return ""
    return f" with {sum(count_images(Path(root).expanduser()) for root in roots):,} images"


def _values(cells: list[Asked]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for one in cells:
        for key, value in flatten(one.cell.config).items():
            values.setdefault(key, set()).add(canonical(value).strip('"'))
    return values


def _listed(values: set[str]) -> str:
    return ",".join(sorted(values)) or "not set"


def _choices(item: Override, loader: ConfigLoader) -> list[str]:
    key = item.get_key_element()
    if not item.is_sweep_override():
        return [f"{key}={item.get_value_element_as_str()}"]
    if not item.is_discrete_sweep():
        raise ConfigError(item.key_or_group, _said(item), "list the values: a,b or range(1,5)")
    found = [f"{key}={value}" for value in item.sweep_string_iterator()]
    if not found:
        there = loader.get_group_options(item.key_or_group, results_filter=ObjectType.CONFIG)
        options = f"; there are {', '.join(there)}" if there else ""
        raise ConfigError(item.key_or_group, _said(item), f"matches nothing{options}")
    return found


def _said(item: Override) -> str:
    """The value as it was typed."""
    return (item.input_line or "").partition("=")[2]


def distinct(cells: list[Asked]) -> None:
    """Refuse a study in which a cell is asked for twice: its trials would count double. Raises ConfigError."""
    seen: dict[str, Asked] = {}
    for asked in cells:
        first = seen.setdefault(asked.cell.id, asked)
        if first is not asked:
            words = " ".join(asked.overrides) or "(no overrides)"
            same = " ".join(first.overrides) or "(no overrides)"
            raise ConfigError("asked for", f"'{words}'", f"is the same cell as '{same}'; ask for each cell once")


def assignments(before: Settings, after: Settings) -> list[str]:
    """The overrides that turn one's composed config into the other's: what was left open and has been decided."""
    old, new = flatten(asdict(before)), flatten(asdict(after))
    return [assignment(key, value) for key, value in new.items() if old[key] != value]


def assignment(key: str, value: Any) -> str:
    """An override of Hydra's grammar; text is quoted, so that no path or name can be read as grammar."""
    return f"{key}={quoted(value) if isinstance(value, str) else json.dumps(value)}"


def quoted(value: str) -> str:
    """Text in Hydra's grammar."""
    # Hydra reads a backslash as itself unless a quote follows: only there it has to be doubled.
    text = re.sub(r'(\\*)("|\Z)', lambda found: found[1] * 2 + found[2].replace('"', '\\"'), value)
    return f'"{text}"'
