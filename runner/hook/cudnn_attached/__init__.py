"""Watches the training of an attached script from within: see docs/attach.md."""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from cudnn_attached.asked import asked


def begin() -> None:
    """Watch the environment from now on, and everything else from the moment when torch has been imported."""
    given = asked()
    if given:
        from cudnn_attached.variables import watch_variables

        watch_variables(given)
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported(MetaPathFinder):
    """Finds torch like everybody else, once, and acts when its import is done."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                from cudnn_attached.watch import watch

                watch()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
