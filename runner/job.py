"""One Hydra job = one trial. Runs wherever the launcher starts it: here, in a pool's process, on a node."""

import os
import secrets
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from runner.recipe import sized


def new_study() -> str:
    """A folder name for a new study, its own even within one second."""
    return str(Path("studies", f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{secrets.token_hex(3)}").absolute())


# Cached: every reference within one config must mean the same folder.
OmegaConf.register_new_resolver("new_study", new_study, use_cache=True)
OmegaConf.register_new_resolver("sized", sized)


def run_job(config: DictConfig) -> None:
    """Run the trial that the sweeper asked for, unless it is taken; everything about it is in the study's folder.

    Ctrl-C and SIGTERM end the trial with a record, and pass only in the study's own process: a launcher's job that
    ends in good order tells its launcher so.
    """
    from hydra.core.hydra_config import HydraConfig

    from runner import isolate, schema
    from runner.cell import Cell
    from runner.interrupt import terminable
    from runner.presence import end_with, leave, present
    from runner.settings import cell_config
    from runner.study import Study
    from runner.trial import Trial

    settings = schema.load(config)
    cell, place = Cell(cell_config(settings)), settings.trial
    exclusive = settings.exclusive and settings.device != "cpu"  # a processor is not locked
    trial = Trial.of(cell, place.number, place.position, settings.device, exclusive)
    study = Study.open(Path(settings.study))
    invoker = study.owner_of(study.round_folder(place.number))
    if invoker is None and "SLURM_JOB_ID" not in os.environ:
        os._exit(1)  # the study's process was killed while this job began; a cluster's jobs may outlive it
    owner = present(study)
    if invoker and owner != invoker:
        end_with(invoker)
    working_folder = HydraConfig.get().runtime.cwd if HydraConfig.initialized() else os.getcwd()
    try:
        with terminable():
            folder = study.claim(trial, owner.name)
            if folder:
                isolate.run(trial, folder, working_folder, settings.timeout)
    except KeyboardInterrupt:
        if owner == invoker:
            raise
    finally:
        if owner != invoker:  # a launcher's worker or a job elsewhere: nobody need wait until its heartbeat is missed
            leave(study)
