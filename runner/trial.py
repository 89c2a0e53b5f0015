"""A trial: one cell trained once, in one fresh process. This is all that the process is told."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.cell import Cell
from runner.errors import StudyError
from runner.jsonfile import read_json, write_json
from runner.seeds import stream_seeds

SCHEMA = 1


@dataclass(frozen=True)
class Trial:
    """What one process is asked to do.

    `number` counts the trials of a cell from 0 and is the number of the round; `position` is the place within the
    round; `device` is the device itself ("cuda:1"), where the cell's settings only know its type.
    """

    cell: str
    config: dict[str, Any]
    number: int
    position: int
    device: str
    seeds: dict[str, int]

    @classmethod
    def of(cls, cell: Cell, number: int, position: int, device: str) -> "Trial":
        """The trial of a cell in a round, with its seeds worked out."""
        seeds = cell.config["seeds"]
        return cls(
            cell=cell.id,
            config=cell.config,
            number=number,
            position=position,
            device=device,
            seeds=stream_seeds(seeds["base"], seeds["vary"], number),
        )

    def write(self, path: Path) -> None:
        """Write trial.json for the child."""
        write_json(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Trial":
        """Read what `write` wrote. Raises StudyError for a damaged file."""
        fields = read_json(path, SCHEMA)
        del fields["schema"]
        try:
            return cls(**fields)
        except TypeError as error:
            raise StudyError(f"{path}: not a trial of this version ({error}); remove its folder") from error
