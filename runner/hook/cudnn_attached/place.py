"""Where in the user's code something happens: the lines on the stack that are neither ours nor PyTorch's."""

import inspect
import os
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

from cudnn_attached.asked import asked

HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = tuple({path for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))})
LIBRARIES = ("site-packages", "dist-packages")


def place() -> str:
    """The line that does it: "helpers/fast.py:7"; a library's with the user's that called it; "" where there is none.

    Paths are relative to the folder in which the command was given, a library's to where it is installed.
    """
    lines = [(kind, line) for kind, line in _lines() if kind in ("user", "library")]
    users = [line for kind, line in lines if kind == "user"]
    if not lines:
        return ""
    first = lines[0][1]
    return f"{first} (called at {users[0]})" if users and users[0] != first else first


def called_by_torch() -> bool:
    """Whether PyTorch itself, and nobody's code, makes the call that is looked at."""
    return next((kind for kind, _ in _lines() if kind != "ours"), "") == "torch"


def place_of(thing: Any) -> str:
    """The file and line where a function or class is defined; its name where that cannot be told."""
    try:
        return f"{_shown(inspect.getsourcefile(thing) or '')}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return getattr(thing, "__qualname__", repr(thing))


def _lines() -> Iterator[tuple[str, str]]:
    """Whose code each frame of the stack runs, and its line, the innermost first."""
    frame = sys._getframe(1)
    while frame:
        file = frame.f_code.co_filename
        yield _whose(file), f"{_shown(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]


def _whose(file: str) -> str:
    torch = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "/nowhere/torch")
    if file.startswith(HOOK + os.sep):
        return "ours"
    if file.startswith(torch + os.sep):
        return "torch"
    if any(name in file.split(os.sep) for name in LIBRARIES):
        return "library"
    return "python" if file.startswith(("<", *PYTHON)) else "user"


def _shown(file: str) -> str:
    parts = file.split(os.sep)
    for name in LIBRARIES:
        if name in parts:
            return os.sep.join(parts[parts.index(name) + 1 :])
    given, path = asked(), _absolute(file)
    return path.removeprefix(given.home + os.sep) if given else path


def _absolute(file: str) -> str:
    """A file's path; as it is where the script has removed the folder in which it works."""
    try:
        return os.path.abspath(file)
    except FileNotFoundError:
        return file
