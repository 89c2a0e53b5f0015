"""The log of a trial: what its process printed."""

import os
from pathlib import Path


def end_of(path: Path, size: int = 2000) -> str:
    """The last characters of a log: the error, when there is one.

    After a crash the interpreter lists every extension module that it had loaded: that long line is left out.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 32 * size))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if not line.startswith("Extension modules: ")).strip()[-size:]
