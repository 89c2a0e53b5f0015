"""The study as a Hydra sweeper. Thin: Hydra imports it even for --help; everything else is in runner.sweep."""

from typing import Any

from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class StudySweeper(Sweeper):
    """Expands the command line into cells and has them trained in rounds.

    `params` are what a recipe sweeps over, by key, as Hydra's basic sweeper has it; `runner.expand` reads them from the
    config.
    """

    def __init__(self, params: Any = None):
        self.params = params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra hands over, and fix the study's folder before a launcher is made that refers to it."""
        from hydra.core.plugins import Plugins

        from runner.sweep import fix_folders

        fix_folders(config)
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Do the whole study; the exit code tells how it went."""
        from runner.sweep import sweep

        assert self.config is not None and self.hydra_context is not None and self.launcher is not None
        return sweep(arguments, self.config, self.hydra_context.config_loader, self.launcher)
