"""One Hydra job = one trial. Runs wherever the launcher starts it: here, in a pool's process, on a node."""

import os
import secrets
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf


def new_study() -> str:
    """A folder name for a new study, its own even within one second."""
    return str(Path("studies", f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{secrets.token_hex(3)}").absolute())


# Cached: every reference within one config must mean the same folder.
OmegaConf.register_new_resolver("new_study", new_study, use_cache=True)


def run_job(config: DictConfig) -> None:
    """Run the trial that the sweeper asked for, unless it is taken; everything about it is in the study's folder."""
    from hydra.core.hydra_config import HydraConfig

    from runner import isolate, schema
    from runner.cell import Cell
    from runner.study import Study
    from runner.trial import Trial

    settings = schema.load(config)
    cell = Cell(schema.cell_config(settings))
    trial = Trial.of(cell, settings.trial.number, settings.trial.position, settings.device)
    folder = Study.open(Path(settings.study)).claim(trial)
    if folder is not None:
        working_folder = HydraConfig.get().runtime.cwd if HydraConfig.initialized() else os.getcwd()
        isolate.run(trial, folder, working_folder, settings.timeout)
