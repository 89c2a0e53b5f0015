"""The door: what is refused before anything exists, and what the machine decides where the settings leave it open."""

import os
from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig

from runner import isolate
from runner.dataset_files import check_files
from runner.errors import ConfigError
from runner.expand import Asked, assignments, distinct
from runner.fetch import fetch
from runner.jsonfile import canonical
from runner.machine import cuda_devices, physical_cores
from runner.schema import Settings, cell_config
from runner.workload import device_of, settled


def settle(asked: list[Asked], config: DictConfig) -> tuple[list[Asked], list[str]]:
    """The door's second half: what needs files, the machine or the tracking store. Raises ConfigError.

    Gives the cells with everything decided, and the cards for device=all. The forkserver loads torch meanwhile, and
    MLflow is loaded while that goes on; nothing is created before all cells have passed.
    """
    distinct(asked)  # here too, because it costs nothing yet
    datasets = {canonical(one): one for one in (asdict(one.settings.dataset) for one in asked)}.values()
    for dataset in datasets:
        check_files(dataset)
    everywhere = _everywhere(asked, config)
    cores = physical_cores()
    server = isolate.server(cell_config(settled(asked[0].settings, "cpu", cores)), os.getcwd())
    tracked = uri_of(asked[0].settings) is not None
    if tracked:
        import runner.tracking
    gpus = cuda_devices(server)
    if everywhere and not gpus:
        raise ConfigError("device", "all", "torch sees no CUDA device here; choose auto or cpu")
    cells = [_settled(one, bool(gpus), cores) for one in asked]
    distinct(cells)
    if tracked:
        runner.tracking.check(
            str(uri_of(cells[0].settings)), [one.cell for one in cells], cells[0].settings.tracking.experiment
        )
    for dataset in datasets:  # the last thing: nothing is downloaded for a study that is refused anyway
        fetch(server, dataset)
    return cells, [f"cuda:{index}" for index in range(len(gpus))] if everywhere and len(gpus) > 1 else []


def _everywhere(asked: list[Asked], config: DictConfig) -> bool:
    """Whether all cards are wanted: rounds are dealt out from here then, and by no launcher."""
    devices = {one.settings.device for one in asked}
    if "all" in devices and devices != {"all"}:
        raise ConfigError("device", ",".join(sorted(devices)), "all cards stand alone; give device=all, or a list")
    if devices == {"all"} and not str(config.hydra.launcher._target_).endswith(".BasicLauncher"):
        raise ConfigError("device", "all", "deals rounds to the cards itself; use it with hydra/launcher=basic")
    return devices == {"all"}


def _settled(asked: Asked, gpu: bool, cores: int) -> Asked:
    settings = settled(asked.settings, device_of(asked.settings.device, gpu), cores)
    return Asked((*asked.overrides, *assignments(asked.settings, settings)), settings)


def rounds_of(cells: list[Asked]) -> int:
    """The most that a cell was given: a CPU and a GPU in one study may differ where nobody said a number."""
    return max(one.settings.trials or 0 for one in cells)


def uri_of(settings: Settings) -> str | None:
    """The address of the MLflow store, None with tracking=off."""
    if settings.tracking.name == "off":
        return None
    return settings.tracking.uri or f"sqlite:///{Path('mlflow.db').absolute()}"
