"""The study, from the command line to the exit code. Everything that concerns a whole study happens here, in order."""

import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, open_dict
from omegaconf.errors import OmegaConfBaseException

from runner import __version__, isolate
from runner.dataset_files import check_files
from runner.errors import ConfigError, Refusal, StudyError
from runner.expand import Asked, assignments, distinct, expand
from runner.machine import cuda_devices, physical_cores
from runner.progress import Progress
from runner.record import Record
from runner.report import write_report
from runner.report.terminal import show
from runner.rounds import launch
from runner.schema import Settings, cell_config
from runner.study import Study
from runner.workload import device_of, settled

FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def fix_folders(config: DictConfig) -> None:
    """Make the study's folder, and Hydra's within it, absolute and the same for every job of this invocation."""
    folder = Path(str(config.study)).absolute()
    start = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{os.getpid()}"
    with open_dict(config):
        config.study = str(folder)
        config.hydra.sweep.dir = str(Study(folder).hydra_folder(start))


def sweep(arguments: list[str], config: DictConfig, loader: ConfigLoader, launcher: Launcher) -> None:
    """Do a study. Ends the process with a code other than 0 if anything failed or was refused."""
    try:
        code = _sweep(arguments, config, loader, launcher)
    except (ConfigError, Refusal, StudyError, HydraException, OmegaConfBaseException) as error:
        cause = f"\n{error.__cause__}" if isinstance(error, HydraException) and error.__cause__ else ""
        print(f"error: {error}{cause}", file=sys.stderr)
        code = REFUSED
    except KeyboardInterrupt:  # before the first trial, or a second time
        code = INTERRUPTED
    if code:
        sys.exit(code)


def _sweep(arguments: list[str], config: DictConfig, loader: ConfigLoader, launcher: Launcher) -> int:
    cells = settle(expand(arguments, config, loader), os.getcwd())
    settings, rounds = cells[0].settings, _rounds(cells)
    study = Study.create(Path(str(config.study)), _asked(rounds), [asked.cell for asked in cells])
    progress, uri = Progress(study, len(cells), rounds), _uri(settings)
    singly = str(config.hydra.launcher._target_).endswith(".BasicLauncher")
    refused, interrupted = None, False
    try:
        for records in launch(study, cells, rounds, launcher, str(config.hydra.sweep.dir), singly):
            refused = _refused(study, records)
            if refused:
                break
            progress.show(records)
            uri = _shown(uri, settings, study, [record for record in records if record])
    except KeyboardInterrupt:
        interrupted = True
    summary = write_report(study)
    if progress.done:  # else MLflow has not heard of the study, and need not
        uri = _shown(uri, settings, study, [], summary)
    if refused:
        raise refused
    show(summary)
    failed = progress.close(uri)
    return INTERRUPTED if interrupted else FAILED if failed else 0


def settle(asked: list[Asked], working_folder: str) -> list[Asked]:
    """The door's second half: what needs files, the machine or the tracking store. Raises ConfigError.

    The forkserver loads torch meanwhile, and MLflow is loaded while that goes on; nothing is created before all cells
    have passed.
    """
    distinct(asked)  # here too, because it costs nothing yet
    for one in asked:
        check_files(asdict(one.settings.dataset))
    cores = physical_cores()
    server = isolate.server(cell_config(settled(asked[0].settings, "cpu", cores)), working_folder)
    tracked = _uri(asked[0].settings) is not None
    if tracked:
        import runner.tracking
    gpus = cuda_devices(server)
    cells = [_settled(one, gpus, cores) for one in asked]
    distinct(cells)
    if tracked:
        runner.tracking.check(
            str(_uri(cells[0].settings)), [one.cell for one in cells], cells[0].settings.tracking.experiment
        )
    return cells


def _settled(asked: Asked, gpus: tuple[str, ...], cores: int) -> Asked:
    settings = settled(asked.settings, device_of(asked.settings.device, gpus), cores)
    return Asked((*asked.overrides, *assignments(asked.settings, settings)), settings)


def _rounds(cells: list[Asked]) -> int:
    """The most that a cell was given: a CPU and a GPU in one study may differ where nobody said a number."""
    return max(one.settings.trials or 0 for one in cells)


def _uri(settings: Settings) -> str | None:
    if settings.tracking.name == "off":
        return None
    return settings.tracking.uri or f"sqlite:///{Path('mlflow.db').absolute()}"


def _asked(rounds: int) -> dict[str, Any]:
    return {
        "rounds": rounds,
        "version": __version__,
        "command": ["python", "-m", "runner", *sys.argv[1:]],
        "folder": os.getcwd(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _refused(study: Study, records: list[Record | None]) -> Refusal | None:
    """What only a child could find impossible is as impossible in the next round: the first such record's reason."""
    for record in records:
        if record and record.refused and record.number == 0:
            folder = study.trial_folder(record.cell, record.number)
            return Refusal(f"{record.reason}\nThe study ends in its first round; the log is in {folder}")
    return None


def _shown(
    uri: str | None, settings: Settings, study: Study, records: list[Record], summary: dict[str, Any] | None = None
) -> str | None:
    """Show trials, and at the end the summary, in MLflow. Returns the address, None from the first failure on."""
    if uri is None:
        return None
    from runner import tracking

    try:
        runs = _runs(uri, study, settings.tracking.experiment)
        for record in records:
            tracking.send_trial(runs, study, record)
        if summary:
            tracking.send_summary(runs, study, summary)
    except tracking.STORE_ERRORS as error:  # no outage may cost a trial
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"MLflow at {uri} does not take the study ({reason}); everything is in {study.folder}", file=sys.stderr)
        return None
    return uri


@cache
def _runs(uri: str, study: Study, experiment: str | None) -> Any:
    from runner.tracking import open_study

    return open_study(uri, study, experiment)
