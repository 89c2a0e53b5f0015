"""The door: what is refused before anything exists, and what the machine decides where the settings leave it open."""

import os
from dataclasses import asdict
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from runner import isolate
from runner.cell import flatten
from runner.dataset_files import TORCHVISION_FILES, check_files
from runner.errors import ConfigError
from runner.expand import Asked, assignments, distinct
from runner.fetch import fetch
from runner.jsonfile import canonical
from runner.machine import cuda_devices, physical_cores
from runner.mirror import own_store
from runner.settings import Settings, cell_config
from runner.workload import MANY_ROUNDS, device_of, many_rounds, settled


def settle(asked: list[Asked], config: DictConfig) -> tuple[list[Asked], list[str]]:
    """The door's second half: what needs files, the machine or the tracking store. Raises ConfigError.

    Gives the cells with everything decided, and the cards for device=all. The forkserver loads torch meanwhile, and
    MLflow is loaded while that goes on; nothing is created before all cells have passed.
    """
    _one_study(asked, config)
    distinct(asked)  # here too, because it costs nothing yet
    datasets = {canonical(one): one for one in (asdict(one.settings.dataset) for one in asked)}.values()
    for dataset in datasets:
        _check_files(dataset, asked[0].settings)
    everywhere = _everywhere(asked, config)
    cores = physical_cores()
    server = isolate.server(cell_config(settled(asked[0].settings, "cpu", cores)), os.getcwd())
    tracked = uri_of(asked[0].settings) is not None
    if tracked:
        import runner.tracking
    gpus = cuda_devices(server)
    if everywhere and not gpus:
        raise ConfigError("device", "all", "torch sees no CUDA device here; choose auto or cpu")
    rounds = MANY_ROUNDS if many_rounds([one.settings for one in asked]) else None
    cells = [_settled(one, bool(gpus), cores, rounds) for one in asked]
    distinct(cells)
    if tracked and cells[0].settings.tracking.required:
        runner.tracking.check(
            str(uri_of(cells[0].settings)), [one.cell for one in cells], cells[0].settings.tracking.experiment
        )
    for dataset in datasets:  # the last thing: nothing is downloaded for a study that is refused anyway
        fetch(server, dataset)
    return cells, [f"cuda:{index}" for index in range(len(gpus))] if everywhere and len(gpus) > 1 else []


def _check_files(dataset: dict[str, Any], settings: Settings) -> None:
    """Refuse data that are missing; where a recipe needs them, the message says so."""
    try:
        check_files(dataset)
    except ConfigError as error:
        if settings.recipe is None:
            raise
        key, value, allowed = error.args
        needed = f"{allowed} (recipe={settings.recipe.name} needs dataset={dataset['name']}{_instead(dataset['name'])})"
        raise ConfigError(key, value, needed) from error


def _instead(name: str) -> str:
    """What serves a recipe as well as the data set of this name."""
    if name in TORCHVISION_FILES:
        return "; a folder with its images does as well: dataset=image_folder dataset.root=FOLDER"
    return ", with images/NAME and masks/NAME: dataset.root=FOLDER" if name == "mask_folder" else ""


def _one_study(asked: list[Asked], config: DictConfig) -> None:
    """Refuse more than one plan or budget, and a budget where rounds are not begun one after another from here."""
    whole = [{"budget": one.settings.budget, **flatten({"plan": asdict(one.settings.plan)})} for one in asked]
    for key in whole[0]:
        values = list(dict.fromkeys(str(one[key]) for one in whole))
        if len(values) > 1:
            raise ConfigError(key, ",".join(values), "holds for the study as a whole; give one value")
    budget = whole[0]["budget"]
    if budget and (not in_turn(config) or "all" in {one.settings.device for one in asked}):
        raise ConfigError("budget", budget, "needs hydra/launcher=basic and one device; give trials=N instead")


def _everywhere(asked: list[Asked], config: DictConfig) -> bool:
    """Whether all cards are wanted: rounds are dealt out from here then, and by no launcher."""
    devices = {one.settings.device for one in asked}
    if "all" in devices and devices != {"all"}:
        raise ConfigError("device", ",".join(sorted(devices)), "all cards stand alone; give device=all, or a list")
    if devices == {"all"} and not in_turn(config):
        raise ConfigError("device", "all", "deals rounds to the cards itself; use it with hydra/launcher=basic")
    return devices == {"all"}


def in_turn(config: DictConfig) -> bool:
    """Whether trials are done in this process's turn, one after another: by Hydra's basic launcher."""
    return str(config.hydra.launcher._target_).endswith(".BasicLauncher")


def _settled(asked: Asked, gpu: bool, cores: int, rounds: int | None) -> Asked:
    settings = settled(asked.settings, device_of(asked.settings.device, gpu), cores, rounds)
    return Asked((*asked.overrides, *assignments(asked.settings, settings)), settings)


def rounds_of(cells: list[Asked]) -> int:
    """The most that a cell was given: a CPU and a GPU in one study may differ where nobody said a number."""
    return max(one.settings.trials or 0 for one in cells)


def plan_said(asked: Asked) -> dict[str, Any]:
    """What the command line itself says of the plan: the rest a study that is continued has its own values for."""
    said: set[str] = set()
    for word in OverridesParser.create().parse_overrides(list(asked.overrides)):
        group, _, name = word.key_or_group.partition(".")
        value = word.value()
        if group == "plan":
            said |= set(value) if isinstance(value, dict) else {name}  # plan={steps:5} names its keys as well
    return {name: value for name, value in asdict(asked.settings.plan).items() if name in said}


def uri_of(settings: Settings) -> str | None:
    """The address of the MLflow store, None with tracking=off."""
    if settings.tracking.name == "off":
        return None
    return settings.tracking.uri or own_store()
