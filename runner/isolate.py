"""One trial in one fresh process. Whatever the trial does, what comes back is a record."""

import os
import signal
from pathlib import Path
from typing import Any

from runner.child import Ended, ForkServer, call_in_new_interpreter, fork_server
from runner.errors import StudyError
from runner.record import Outcome, Record, now
from runner.study import log_end, log_file, record_file
from runner.trial import Trial

# Loaded before the fork: everything of ours that a trial may import. A user's own modules are not: importing them
# might start CUDA, which no child of a fork survives.
PRELOADED = (
    "runner.worker.interpreter",
    "runner.worker.main",
    "runner.worker.session",
    "runner.models.resnet",
    "runner.models.unet",
    "runner.models.lstm",
    "sklearn.datasets",
)


def server(config: dict[str, Any], working_folder: str) -> ForkServer:
    """The forkserver for trials of a cell with these settings; starting it does not wait for it."""
    return fork_server(tuple(sorted(environ(config).items())), PRELOADED, working_folder)


def environ(config: dict[str, Any]) -> dict[str, str]:
    """The variables that must stand before the child's interpreter starts: later they have no effect.

    Several forkservers (one a process of a parallel launcher) must agree on the order of sets of strings, so the hash
    seed is fixed for them; with isolation=spawn it stays as the user has it, random as a rule.
    """
    # Not MLflow's: a child has no use for them, and they change in this process when MLflow is loaded.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    variables["OMP_NUM_THREADS"] = str(config["threads"])
    if config["isolation"] == "forkserver":
        variables.setdefault("PYTHONHASHSEED", "0")
    if config["determinism"]["workspace"] is not None:
        variables["CUBLAS_WORKSPACE_CONFIG"] = config["determinism"]["workspace"]
    return variables


def run(trial: Trial, folder: Path, working_folder: str, timeout: float | None) -> Record:
    """Run the trial and return its record; a child that left none gets one here. Ctrl-C passes, after a record."""
    request = {"call": "runner.worker.main:run", "argument": str(folder), "log": str(log_file(folder))}
    started = now()
    try:
        if trial.config["isolation"] == "spawn":
            ended = call_in_new_interpreter(environ(trial.config), request, working_folder, timeout)
        else:
            ended = server(trial.config, working_folder).call(request, timeout)
    except StudyError as error:  # the forkserver died, by another's hand or for want of memory: start a new one
        fork_server.cache_clear()
        return _recorded(folder, Record.of(trial, "failed", str(error), started))
    except KeyboardInterrupt:
        _recorded(folder, Record.of(trial, "interrupted", "interrupted from the keyboard", started))
        raise
    outcome, reason = _unexpected(ended, folder, timeout)
    return _recorded(folder, Record.of(trial, outcome, reason, started, process={"pid": ended.pid}))


def _recorded(folder: Path, otherwise: Record) -> Record:
    """The record that the child left, or this one if it left none."""
    folder.mkdir(parents=True, exist_ok=True)  # a trial may have removed it
    if not record_file(folder).is_file():
        otherwise.write(record_file(folder))
    return Record.read(record_file(folder))


def _unexpected(ended: Ended, folder: Path, timeout: float | None) -> tuple[Outcome, str]:
    if ended.timed_out:
        return "timed_out", f"not done within timeout={timeout:g} seconds"
    how = f"by {signal.Signals(-ended.status).name}" if ended.status < 0 else f"with exit status {ended.status}"
    last = log_end(folder)
    return "failed", f"the process ended {how} and left no record" + (f"; the end of its log: {last}" if last else "")
