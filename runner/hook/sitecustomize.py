"""Runs in every Python that an attached script starts, before its first line. Light until the script imports torch."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import cudnn_attached


def run_the_users_own() -> None:
    """Run the sitecustomize that this one stands in front of, if there is one."""
    here = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if Path(entry or ".").resolve() != here])
    if spec and spec.loader:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


cudnn_attached.begin()
run_the_users_own()
