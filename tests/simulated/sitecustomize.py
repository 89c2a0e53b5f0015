"""A machine with four cards, simulated on a CPU: put this folder on PYTHONPATH.

The study's process is told of four devices; a trial gets the CPU for each of them and the card's UUID for its record.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

COUNT = int(os.environ.get("SIMULATED_COUNT", "4"))


def machine(module: Any) -> None:
    """The devices that a study's process sees."""
    devices = tuple(module.Device(f"SIMULATED CARD {index}", f"SIMULATED-{index}") for index in range(COUNT))
    module.cuda_devices = lambda server: devices


def session(module: Any) -> None:
    """The device that a trial uses, and what it says of it."""
    found = module.environment

    def usable(name: str) -> Any:
        os.environ["SIMULATED_CARD"] = name
        return module.torch.device("cpu")

    def environment(*arguments: Any) -> dict[str, Any]:
        index = os.environ["SIMULATED_CARD"].partition(":")[2] or "0"
        return found(*arguments) | {"gpu_name": "SIMULATED CARD", "gpu_uuid": f"SIMULATED-{index}"}

    module.usable, module.environment = usable, environment


PATCHES: dict[str, Callable[[Any], None]] = {"runner.machine": machine, "runner.worker.session": session}


class Patching(Loader):
    """Loads a module as its own loader does, and patches it before anybody can take a name from it."""

    def __init__(self, own: Any, patch: Callable[[Any], None]):
        self.own, self.patch = own, patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader."""
        return self.own.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """As the module's own loader, and patch."""
        self.own.exec_module(module)
        self.patch(module)


class Finder(MetaPathFinder):
    """Finds the modules to be patched; asks all other finders where they are."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module to be patched, None for all others."""
        if fullname not in PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None:
            spec.loader = Patching(spec.loader, PATCHES[fullname])
        return spec


sys.meta_path.insert(0, Finder())
