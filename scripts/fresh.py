"""One measurement in one fresh process: a runner's trial, or a function of one of these scripts."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module

import runner.job  # noqa: F401 - the config refers to its resolver
from runner import isolate, schema
from runner.cell import Cell
from runner.child import ForkServer
from runner.layout import log_file
from runner.log import end_of
from runner.machine import cuda_devices, physical_cores
from runner.mode import MODES
from runner.record import Record
from runner.settings import cell_config
from runner.study import Study
from runner.trial import Trial
from runner.workload import device_of, settled

# What names the place of a measurement, from the environment in a record.
ENVIRONMENT = ("gpu_name", "cpu", "threads", "torch", "cuda", "cudnn", "driver", "python")


def four_cells(words: Sequence[str], device: str) -> list[Cell]:
    """The cells of the four modes with these overrides, as a study of them on this device would have them."""
    with initialize_config_module("runner.conf", version_base="1.3"):
        configs = [compose("config", [f"cudnn={mode}", *words]) for mode in MODES.values()]
    settings = [settled(schema.load(config), device, physical_cores()) for config in configs]
    return [Cell(cell_config(one)) for one in settings]


def merged(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """All words of a command line, those of `others` in place of what sets the same key."""
    return list({word.partition("=")[0]: word for word in (*words, *others)}.values())


def device_here(asked: str) -> str:
    """The device's name for torch; a child of a forkserver looks for CUDA, never this process."""
    config = {"threads": physical_cores(), "isolation": "forkserver", "determinism": {"workspace": None}}
    return device_of(asked, bool(cuda_devices(isolate.server(config, os.getcwd())))) if asked == "auto" else asked


def trial(study: Study, cell: Cell, number: int, device: str) -> Record:
    """One trial as a study does it, which must finish with a steady step time."""
    asked = Trial.of(cell, number, 0, device, exclusive=device != "cpu")
    folder = study.claim(asked, "bench")
    assert folder is not None, "the trial's folder is taken"
    record = isolate.run(asked, folder, os.getcwd(), timeout=None)
    if not record.complete:
        raise SystemExit(f"a trial of {cell.id} {record.outcome}: {record.reason}")
    if record.speed is None or record.speed.step_ms is None:
        raise SystemExit(f"train.steps={cell.config['train']['steps']}: too few for a steady step time")
    return record


def answer(server: ForkServer, function: str, ask: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a function ("module:name") of these scripts answers in a new child of a forkserver."""
    folder.mkdir(parents=True)
    Path(folder, "ask.json").write_text(json.dumps(ask))
    server.call({"call": function, "argument": str(folder), "log": str(folder / "log.txt")}, timeout=None)
    return answered(folder, function)


def answered(folder: Path, what: str) -> dict[str, Any]:
    """The answer that was left in a folder; ends with the log's last lines where there is none."""
    file = folder / "answer.json"
    if not file.is_file():
        raise SystemExit(f"{what} left no answer: {end_of(log_file(folder))}")
    found: dict[str, Any] = json.loads(file.read_text())
    return found
