"""One trial in one fresh process. Whatever the trial does, what comes back is a record."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from runner.child import Ended, ForkServer, ServerDied, call_in_new_interpreter, fork_server
from runner.claim import claim_of
from runner.device_lock import locked
from runner.errors import StudyError, unwritable
from runner.interrupt import ended_by, reason_of
from runner.layout import log_file, record_file
from runner.log import end_of
from runner.machine import Device, cuda_devices
from runner.process_end import ended_words
from runner.record import Outcome, Record, now
from runner.trial import Trial

# Loaded before the fork: what every trial imports, and all of our models. A user's own modules are not: importing them
# might start CUDA, which no child of a fork survives.
PRELOADED = (
    "runner.worker.interpreter",
    "runner.worker.main",
    "runner.worker.session",
    "runner.models.resnet",
    "runner.models.unet",
    "runner.models.lstm",
    "runner.models.resnet_cifar",
    "runner.models.preact_resnet",
    "runner.models.resnet9",
    "runner.models.cnn",
    "runner.models.torchvision_nets",
    "runner.models.layer",
    "runner.models.convolution",
    "torch._dynamo",  # every optimizer asks for it at its first step
    "pydantic.dataclasses",
)


# What a trial's process calls, by phase, where it is not the training of ours.
WORK = {"attach": "runner.worker.attached:run"}


def server(config: dict[str, Any], working_folder: str) -> ForkServer:
    """The forkserver for trials of a cell with these settings; starting it does not wait for it."""
    return fork_server(tuple(sorted(environ(config).items())), PRELOADED, working_folder)


def needed(config: dict[str, Any]) -> list[str]:
    """What only trials with such data import, at two seconds each: loaded before the fork of the first of them."""
    dataset = config.get("dataset") or {}
    modules = {
        "sklearn.datasets": dataset.get("name") == "digits",
        "runner.worker.mean_iou": dataset.get("view") == "mask",
    }
    return [name for name, wanted in modules.items() if wanted]


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


def run(
    trial: Trial, folder: Path, working_folder: str, timeout: float | None, say: Callable[[str], None] = print
) -> Record:
    """Run the trial and return its record; a child that left none gets one here.

    What breaks the trial off from outside (Ctrl-C, a signal, the end of a cluster job's time) passes, after a record.
    `say` is told what the trial has to wait for.
    """
    work = WORK.get(trial.config.get("phase", "train"), "runner.worker.main:run")
    request = {"call": work, "argument": str(folder), "log": str(log_file(folder)), "modules": needed(trial.config)}
    started = now()
    process: dict[str, Any] = {}
    try:
        with _device(trial, working_folder, say):
            ended = _call(trial, request, working_folder, timeout)
    except ServerDied as error:  # by another's hand or for want of memory; the next trial starts a new one
        outcome, reason = _server_died(error)
    except StudyError as error:
        outcome, reason = "failed", str(error)
    except BaseException as error:  # Ctrl-C, a signal, a launcher's time limit: raised again, after a record
        _recorded(trial, folder, Record.of(trial, "interrupted", reason_of(error), started))
        raise
    else:
        outcome, reason = _unexpected(ended, folder, timeout)
        process = {"pid": ended.pid}
    return _recorded(trial, folder, Record.of(trial, outcome, reason, started, process=process))


def _call(trial: Trial, request: dict[str, Any], working_folder: str, timeout: float | None) -> Ended:
    if trial.config["isolation"] == "spawn":
        return call_in_new_interpreter(environ(trial.config), request, working_folder, timeout)
    return server(trial.config, working_folder).call(request, timeout)


@contextmanager
def _device(trial: Trial, working_folder: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the trial's device, if it is one that others could use too."""
    kind, _, index = trial.device.partition(":")
    devices = _devices(working_folder, str(trial.config["threads"])) if kind == "cuda" and trial.exclusive else ()
    if int(index or 0) >= len(devices):  # no such device: the trial itself will say so
        yield
        return
    with locked(devices[int(index or 0)], say):
        yield


@cache
def _devices(working_folder: str, threads: str) -> tuple[Device, ...]:
    config = {"threads": threads, "isolation": "forkserver", "determinism": {"workspace": None}}
    return cuda_devices(server(config, working_folder))


def _recorded(trial: Trial, folder: Path, otherwise: Record) -> Record:
    """The record that the child left, or this one if it left none that can be read.

    A trial may have removed its folder, or written something of its own there; if it was taken for dead and the
    folder is another's now, nothing is written.
    """
    claim = claim_of(folder)
    if claim and claim.name != trial.claim:
        return otherwise
    try:
        if folder.parent.is_dir():  # else the study itself was removed, and is not made anew
            folder.mkdir(exist_ok=True)
        if not _is_record(record_file(folder)):
            otherwise.write(record_file(folder))
    except OSError as error:
        raise unwritable(folder, error) from error
    return Record.read(record_file(folder))


def _is_record(path: Path) -> bool:
    try:
        Record.read(path)
    except StudyError:
        return False
    return True


def _server_died(error: ServerDied) -> tuple[Outcome, str]:
    if error.status == -signal.SIGTERM:
        return "interrupted", ended_by(signal.SIGTERM)
    return "failed", str(error)


def _unexpected(ended: Ended, folder: Path, timeout: float | None) -> tuple[Outcome, str]:
    if ended.timed_out:
        return "timed_out", f"not done within timeout={timeout:g} seconds"
    if ended.status == -signal.SIGTERM:
        return "interrupted", ended_by(signal.SIGTERM)
    last = end_of(log_file(folder))
    tail = f"; the end of its log: {last}" if last else ""
    return "failed", f"the process ended {ended_words(ended.status)} and left no record{tail}"
