"""Finding and calling what a user names by `_target_`."""

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from runner.errors import Refusal


def call(key: str, target: str, args: dict[str, Any]) -> Any:
    """Call what `target` ("package.module.name") names with `args` as keywords and return what it returns.

    key: the setting's name for messages ("dataset._target_"). Raises Refusal in one line for a module or name that is
    not there (the module that is really missing is named) and for arguments that do not fit; errors from inside the
    call come through as they are.
    """
    function = locate(key, target)
    try:
        inspect.signature(function).bind(**args)
    except TypeError as error:
        raise Refusal(f"{key}={target}: {error}; it takes {inspect.signature(function)}") from error
    except ValueError:  # Python knows no signature of some functions written in C
        pass
    return function(**args)


def locate(key: str, target: str) -> Callable[..., Any]:
    """Import the module part of "package.module.name" and return its `name`.

    From now on the working folder comes first, as it does for a script of the user's; Python's own modules and those
    of ours that have been imported before stay what they are.
    """
    module_name, _, name = target.rpartition(".")
    if not module_name:
        raise Refusal(f"{key}={target}: give it as package.module.name")
    if sys.path[:1] != [os.getcwd()]:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if f"{module_name}.".startswith(f"{error.name}."):
            raise Refusal(f"{key}={target}: there is no module {error.name}{_hidden()}") from error
        raise Refusal(f"{key}={target}: {module_name} needs the module {error.name}, which is missing") from error
    except (ImportError, SyntaxError) as error:
        raise Refusal(f"{key}={target}: {module_name} cannot be imported: {error}{_hidden()}") from error
    except BaseException as error:  # a user's module may do anything while it is imported
        hidden = _hidden() if isinstance(error, AttributeError) else ""
        raise Refusal(f"{key}={target}: {module_name} cannot be imported: {_said(error)}{hidden}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise Refusal(f"{key}={target}: {module_name} has no function or class {name}{_hidden()}")
    return function  # type: ignore[no-any-return]


def _hidden() -> str:
    """What to do about modules in the working folder whose names belong to others that have been imported already."""
    folder = Path.cwd()
    own = [*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py"))]
    hidden = [path for path in sorted(own) if path.stem in sys.modules and not _is_at(sys.modules[path.stem], path)]
    files = ", ".join(map(str, hidden))
    return f"; another module of the same name is used in place of {files}: rename yours" if hidden else ""


def _is_at(module: Any, path: Path) -> bool:
    """Whether a module that was imported is this file or this package."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(path.resolve())


@contextmanager
def blaming(subject: str) -> Iterator[None]:
    """Say in one line whose code it was that raised, or wanted to end. A refusal passes, and a want of memory.

    Nobody's Ctrl-C comes here: the child has a session of its own, and what it is sent is for its code alone.
    """
    try:
        yield
    except BaseException as error:  # a user's code may raise anything
        if isinstance(error, Refusal | MemoryError | GeneratorExit) or type(error).__name__ == "OutOfMemoryError":
            raise
        raise Refusal(f"{subject}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """An error's type and the first line of what it says."""
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"


def source_digest(config: dict[str, Any]) -> str | None:
    """The digest of the files that define what a user named in `model` and `dataset`; None if they named nothing.

    Those are the module that the name is taken from, the one that defines it (a package may only pass it on), and those
    of a class's bases. Trials before and after a change there must not be pooled. What else these files import is not
    looked at.
    """
    targets = [config[group]["_target_"] for group in ("model", "dataset") if "_target_" in config[group]]
    files = {file for target in targets for file in _files(target)}
    contents = sorted(Path(file).read_bytes() for file in files)  # wherever they lie
    return hashlib.sha256(b"".join(contents)).hexdigest()[:8] if files else None


def _files(target: str) -> Iterator[str]:
    """The files that define what a target names, without those of PyTorch: its version is recorded."""
    module_name, _, name = target.rpartition(".")
    found = getattr(import_module(module_name), name)
    classes = found.__mro__ if isinstance(found, type) else (found,)
    own = [getattr(one, "__module__", None) for one in classes]
    for one in [module_name, *(name for name in own if isinstance(name, str))]:
        file = getattr(sys.modules.get(one), "__file__", None)  # Python's own types have none
        if file and one.partition(".")[0] not in ("torch", "torchvision"):
            yield file
