"""What a user can get wrong, as one message that says what to do."""

import errno
from pathlib import Path
from typing import Any


class ConfigError(Exception):
    """A setting that cannot be used. The message names the key, the value and what is allowed."""

    def __init__(self, key: str, value: Any, allowed: str):
        super().__init__(key, str(value), allowed)  # all three, or a launcher's worker could not pickle it

    def __str__(self) -> str:
        return "{}={}: {}".format(*self.args)


class StudyError(Exception):
    """A study folder that cannot be read or used. The message names the path and the way out."""


def reason(error: Exception) -> str:
    """What an error says, of the system's errors without their number and without the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def unwritable(path: Path, error: OSError) -> StudyError:
    """The error for a file or folder of a study that cannot be written, with the way out."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    way_out = "make room" if full else "see to it that it can be written"
    where = f": {error.filename}" if error.filename not in (None, str(path), path) else ""
    said = f"cannot be written ({reason(error)}{where})"
    return StudyError(f"{path}: {said}; {way_out}, then continue with the same command")


class Refusal(Exception):
    """Settings that only the child could find impossible: the study ends, no cell is tried again."""
