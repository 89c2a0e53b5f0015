"""How far a trial has got: what its process tells while it works, for the eye only."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

LENGTH = 100


@dataclass(frozen=True)
class Reached:
    """So many of a trial's steps are done; `loss` is that of one of the last, None where none is known."""

    step: int
    steps: int
    loss: float | None

    def write(self, file: int) -> None:
        """Write it into an open file, over what was there: always LENGTH bytes, so that no reader sees parts of two."""
        os.pwrite(file, json.dumps(asdict(self)).ljust(LENGTH).encode(), 0)

    @classmethod
    def read(cls, path: Path) -> "Reached | None":
        """What was written last; None where there is nothing, or nothing that can be read."""
        try:
            found = json.loads(path.read_bytes())
            loss = found["loss"]
            return cls(int(found["step"]), int(found["steps"]), None if loss is None else float(loss))
        except (OSError, ValueError, TypeError, KeyError):
            return None
