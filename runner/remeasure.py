"""Cells measured again, from their settings alone: a study like any other, by the same command."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from runner.attach import literal
from runner.cell import Cell
from runner.certificate import Certificate
from runner.errors import StudyError, unwritable
from runner.expand import assignment
from runner.interrupt import Terminated, terminable
from runner.jsonfile import write_bytes
from runner.settings import NOT_IN_CELL, Settings
from runner.start import INTERRUPTED
from runner.study import Study

GROUP = "certified"
# What makes a cell since there are certificates; a later version's keys have a value that changes nothing.
NEEDED = {
    *("cudnn", "model", "dataset", "precision", "determinism", "seeds", "train"),
    *("device", "threads", "isolation"),
}
KNOWN = {one.name for one in fields(Settings)} - {*NOT_IN_CELL}


def unfit(config: dict[str, Any]) -> str:
    """Why these are not the settings of one cell, no more and no less; "" if they are.

    What a cell lacks would be measured as this version has it, and what is no part of one would steer the study.
    """
    lacks, more = sorted(NEEDED - config.keys()), sorted(config.keys() - KNOWN)
    parts = [f"lacks {', '.join(lacks)}"] * bool(lacks) + [f"has {', '.join(more)}, no part of a cell"] * bool(more)
    return " and ".join(parts)


def remeasure(certificate: Certificate, folder: Path, words: Sequence[str]) -> int:
    """Do a study of a certificate's cells in `folder`, with these words on its command line besides; its exit code.

    What it prints goes to standard error. Cells whose settings this version does not know are refused by it.
    """
    study = Study(folder)
    if not study.exists:
        study.asks([])  # refuses a folder of others' files
    configs = study.hydra_folder(GROUP)  # in the study, so that its command can be given again
    names = write_cells([cell.config for cell in certificate.cells], configs / GROUP)
    command = [sys.executable, "-m", "runner", "-m", "--config-dir", str(configs), f"+{GROUP}={','.join(names)}"]
    return _ended([*command, assignment("study", str(folder)), "tracking=off", *words])


def write_cells(configs: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    """Write each cell as a config file that sets everything which is part of a cell; return the files' names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"cell-{Cell(config).id}" for config in configs]
        for name, config in zip(names, configs, strict=True):
            text = json.dumps(_composed(config), ensure_ascii=False, indent=1)  # JSON is YAML
            write_bytes(folder / f"{name}.yaml", f"# @package _global_\n{text}\n".encode())
    except OSError as error:
        raise unwritable(folder, error) from error
    return names


def _composed(config: dict[str, Any]) -> dict[str, Any]:
    """The settings after the choices of groups: a choice brings keys that another one of its group does not have."""
    named = {group: part["name"] for group, part in config.items() if isinstance(part, dict) and "name" in part}
    return {
        "defaults": [*({f"override /{group}": name} for group, name in named.items()), "_self_"],
        **_literal(config),
    }


def _literal(value: Any) -> Any:
    """The settings in which no text refers to another setting: what a cell holds is resolved."""
    if isinstance(value, dict):
        return {key: _literal(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_literal(one) for one in value]
    return literal(value) if isinstance(value, str) else value


def _ended(command: list[str]) -> int:
    """Run it to its end. Whoever interrupts this process interrupts that one too, and waits until it has closed.

    The exit code as a shell tells it: above 128 where a signal ended it, and where it was interrupted in any case.
    """
    code = 0
    try:
        process = subprocess.Popen(command, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise StudyError(f"{sys.executable}: cannot be started ({error})") from error
    with terminable():
        while True:
            try:
                ended = process.wait()
                return 128 - ended if ended < 0 else ended or code
            except Terminated as error:
                process.send_signal(error.signal)
            except KeyboardInterrupt:  # a terminal sends it to both; a code that comes with it may be lost, and read 0
                code = INTERRUPTED
