"""Settings as the command line composes them from conf/, without the command line."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import DictConfig

from runner import job  # noqa: F401  # registers the resolver of `study`
from runner.cell import Cell
from runner.schema import load
from runner.settings import Settings, cell_config

CONF = Path(__file__).resolve().parents[1] / "conf"
CUSTOM_DATA = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
SMALL = ["device=cpu", "threads=1", "train.steps=6", "train.batch_size=8", *CUSTOM_DATA]


def composed(*words: str) -> DictConfig:
    """The config that these overrides lead to."""
    return deepcopy(_composed(words))


@cache
def _composed(words: tuple[str, ...]) -> DictConfig:
    with initialize_config_module(version_base="1.3", config_module="runner.conf"):
        return compose("config", overrides=list(words))


def settings(*words: str) -> Settings:
    """The same, typed and checked."""
    return load(composed(*words))


def planted_cell(target: str, *words: str) -> Cell:
    """The cell of a planted model on planted data: few steps on a CPU."""
    return Cell(cell_config(settings("model=custom", f"model._target_=planted.{target}", *SMALL, *words)))


def planted_config(target: str = "Plain", *words: str) -> dict[str, Any]:
    """Its plain settings."""
    return planted_cell(target, *words).config
