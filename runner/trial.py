"""A trial: one cell trained once, in one fresh process. This is all that the process is told."""

import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.cell import Cell
from runner.jsonfile import of_fields, read_fields, write_json
from runner.seeds import stream_seeds

SCHEMA = 1


@dataclass(frozen=True)
class Trial:
    """What one process is asked to do.

    `number` counts the trials of a cell from 0 and is the number of the round; `position` is the place within the
    round; `device` is the device itself ("cuda:1"), where the cell's settings only know its type. `exclusive` says
    whether the device is locked meanwhile. `claim` is the name of this very attempt. `capture` are the indices of the
    operations of its trace whose inputs and outputs are kept (probe=ops).
    """

    cell: str
    config: dict[str, Any]
    number: int
    position: int
    device: str
    seeds: dict[str, int]
    exclusive: bool
    claim: str
    capture: tuple[int, ...] = ()

    @classmethod
    def of(cls, cell: Cell, number: int, position: int, device: str, exclusive: bool = True) -> "Trial":
        """The trial of a cell in a round, with its seeds worked out."""
        seeds = cell.config["seeds"]
        return cls(
            cell=cell.id,
            config=cell.config,
            number=number,
            position=position,
            device=device,
            seeds=stream_seeds(seeds["base"], seeds["vary"], number),
            exclusive=exclusive,
            claim=secrets.token_hex(8),
        )

    def write(self, path: Path) -> None:
        """Write trial.json for the child."""
        write_json(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Trial":
        """Read what `write` wrote. Raises StudyError naming path, field and what it holds for a damaged file."""
        return read_fields(path, SCHEMA, _made, "remove its folder")


def _made(found: dict[str, Any]) -> Trial:
    capture = found.get("capture", [])  # JSON knows no tuples
    return of_fields(Trial, found | {"capture": tuple(capture) if isinstance(capture, list) else capture})
