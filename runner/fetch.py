"""Fetch data sets before the first trial: where trials run there may be no network, and nothing is fetched there."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from runner.child import Ended, ForkServer
from runner.dataset_files import TORCHVISION_FILES, broken_torchvision_files
from runner.errors import ConfigError


def fetch(server: ForkServer, config: dict[str, Any]) -> None:
    """Have a child of the forkserver fetch a data set that dataset.download asks for and that is missing or damaged.

    config: the plain dataset settings. Files that are whole are not touched, nor their folder if all are. Of several
    processes at the same time one fetches, the others wait for it. Ctrl-C ends the child and passes. Raises
    ConfigError naming the setting, what failed, and the folder and the files that are needed.
    """
    if not config.get("download") or not broken_torchvision_files(config["name"], _root(config)):
        return
    print(f"fetching {config['name']} into {_root(config)}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        asked, log = Path(temporary, "dataset.json"), Path(temporary, "log.txt")
        asked.write_text(json.dumps(config), encoding="utf-8")
        request = {"call": "runner.data.torchvision_sets:fetch", "argument": str(asked), "log": str(log)}
        ended = server.call(request, timeout=None)
        if ended.status:
            raise ConfigError("dataset.root", config["root"], _failure(config, _reason(ended, log)))


def _root(config: dict[str, Any]) -> Path:
    return Path(config["root"]).expanduser()


def _reason(ended: Ended, log: Path) -> str:
    said = log.read_text(errors="replace").strip() if ended.status > 0 else ""
    if not said:
        return f"the process that fetches ended with status {ended.status}"
    return said.split("\n")[-1].removeprefix("RuntimeError: ")  # the end of a traceback


def _failure(config: dict[str, Any], reason: str) -> str:
    name, root = config["name"], _root(config)
    folder = (root / TORCHVISION_FILES[name][0]).resolve()
    names = ", ".join(path.name for path in broken_torchvision_files(name, root))
    return (
        f"dataset.download=true could not fetch {name} ({reason})\n"
        f"{folder} needs {names}: put them there from a machine with a network, or try again later"
    )
