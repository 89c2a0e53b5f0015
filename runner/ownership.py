"""Who works on a study's rounds and trials, and what those left half made who died."""

import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.claim import claim_of
from runner.errors import StudyError
from runner.layout import Layout
from runner.owner import Owner, place


@dataclass(frozen=True)
class Owned(Layout):
    """A folder in which processes own rounds and trials."""

    def owner_of(self, folder: Path) -> Owner | None:
        """The living process that owns a round's or a trial's folder; None if it is nobody's or its owner is dead."""
        claim = claim_of(folder)
        return self._living(self.owner_file(claim.owner)) if claim else None

    def owners(self) -> list[Owner]:
        """The living processes that work on the study."""
        found = []
        for file in sorted(self.owners_folder.glob("*.json")):
            with suppress(StudyError):  # no claim may name it: then it matters to nobody
                found.append(self._living(file))
        return [owner for owner in found if owner]

    def _living(self, file: Path) -> Owner | None:
        """The owner with this file, None if it has left or is dead. Raises StudyError for one that cannot be read."""
        try:
            owner, heartbeat = Owner.read(file), file.stat().st_mtime
        except FileNotFoundError:
            return None
        except StudyError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        if owner.is_here and owner.study not in ("", place(self.folder)):  # of the study of which this is a copy
            return None
        return owner if owner.alive(lambda: self._clock() - heartbeat) else None

    def _clock(self) -> float:
        """The time by the file system's clock, which is that of the heartbeats: clocks of machines differ."""
        probe = self.owners_folder / f".clock-{secrets.token_hex(4)}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        except OSError:
            return 0.0  # a folder that cannot be written: nobody is taken for dead
        finally:
            probe.unlink(missing_ok=True)

    def remove_leftovers(self) -> None:
        """Remove what dead processes left half made: claims that never came into place, and their own files."""
        dead = {}
        for file in self.owners_folder.glob("*.json"):
            with suppress(StudyError):
                if not self._living(file):
                    dead[file.stem] = file
        for aside in self.half_made():
            if aside.name.split(".")[2] in dead:
                shutil.rmtree(aside, ignore_errors=True)
        for file in dead.values():
            file.unlink(missing_ok=True)
