"""Claims: a folder of which exactly one process is the owner, however many ask, also on a shared file system.

A claimed folder is made aside with everything in it and renamed into place: a rename onto a folder that is not empty
fails, so that one process wins, and nobody ever sees a claim half made.
"""

import errno
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.errors import StudyError
from runner.jsonfile import of_fields, read_fields, write_json

SCHEMA = 1
_FILE = "claim.json"


@dataclass(frozen=True)
class Claim:
    """Who owns a folder: the claim's own name and the owner's."""

    name: str
    owner: str

    def take(self, folder: Path, fill: Callable[[Path], None] = lambda folder: None) -> bool:
        """Make `folder` with this claim and what `fill` puts into it; False if it is taken already."""
        aside = folder.with_name(f".{folder.name}.{self.owner}.{self.name}")
        aside.mkdir(parents=True)
        try:
            write_json(aside / _FILE, {"schema": SCHEMA, **asdict(self)})
            fill(aside)
            aside.rename(folder)
            return True
        except OSError as error:
            # A file system over a network may do the rename and still report an error: the folder itself tells.
            found = claim_of(folder)
            if found is None and error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return found == self  # nobody's: given up in this moment, or without a claim
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def set_aside(self, folder: Path) -> None:
        """Rename the folder that this claim owns, so that it can be claimed anew; what is in it stays on disk.

        The new name is that of the claim: of several processes that find it dead one wins, and none can set aside
        what the winner has claimed meanwhile.
        """
        target = folder.with_name(f"{folder.name}.{self.name}")
        if self == claim_of(folder) and not target.exists():
            try:
                folder.rename(target)
            except OSError:
                if not target.exists():  # else another process was faster
                    raise

    def release(self, folder: Path) -> None:
        """Give the folder up and remove it, if it is still this claim's."""
        self.set_aside(folder)
        shutil.rmtree(folder.with_name(f"{folder.name}.{self.name}"), ignore_errors=True)


def claim_of(folder: Path) -> Claim | None:
    """The claim on a folder; None if there is no folder, or one without a claim, which nobody can own any more.

    Raises StudyError for a claim that cannot be read: whoever has it may live.
    """
    try:
        return read_fields(folder / _FILE, SCHEMA, _made, "remove its folder")
    except StudyError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise


def _made(fields: dict[str, Any]) -> Claim:
    claim = of_fields(Claim, fields)
    if not all(name.replace("-", "").isalnum() for name in (claim.name, claim.owner)):
        raise ValueError(f"names {claim.name!r} and {claim.owner!r}, which are no names")  # files are named by them
    return claim
