"""A sample: the trials of one cell in one environment, which is what may be pooled."""

from dataclasses import dataclass
from functools import cached_property

from runner.analysis.environment import Environment, differing, environments_of
from runner.cell import Cell, labels
from runner.record import Record
from runner.study import Study


@dataclass(frozen=True)
class Sample:
    """The trials of one cell in one environment, by number; `environment` is None while none has trained."""

    cell: Cell
    label: str
    environment: Environment | None
    records: list[Record]

    @cached_property
    def baseline(self) -> str:
        """The id of its baseline: the cell with the same other settings and the pair (F,F)."""
        cudnn = self.cell.config["cudnn"] | {"deterministic": False, "benchmark": False}
        return Cell(self.cell.config | {"cudnn": cudnn}).id

    @property
    def finished(self) -> list[Record]:
        """The trials over which figures are computed."""
        return [record for record in self.records if record.complete]

    @property
    def unfinished(self) -> list[Record]:
        """The trials that failed, timed out, diverged or were interrupted."""
        return [record for record in self.records if not record.complete]

    @property
    def cuda(self) -> bool | None:
        """Whether CUDA was in use, None while unknown."""
        return self.environment.cuda if self.environment else None


def samples_of(study: Study) -> list[Sample]:
    """Every cell once for each environment in which it was tried, in the study's order; once if in none."""
    cells, records = study.cells(), study.records()
    environments, names = environments_of(records), labels(cells)
    own: dict[str, list[Record]] = {name: [] for name in names}
    for record in records:
        own[record.cell].append(record)
    return [sample for cell in cells for sample in _samples(cell, names[cell.id], own[cell.id], environments)]


def _samples(cell: Cell, label: str, own: list[Record], known: dict[str, Environment]) -> list[Sample]:
    ids = [Environment.of(record).id for record in own]
    places = [known[name] for name in known if name in ids]
    if len(places) < 2:
        return [Sample(cell, label, places[0] if places else None, own)]
    samples = []
    for index, place in enumerate(places):
        # A trial which died before it knew its environment is counted with the first, so that it is not lost.
        here = [r for r, name in zip(own, ids, strict=True) if name == place.id or (not index and name not in known)]
        samples.append(Sample(cell, f"{label}, {_suffix(place, places)}", place, here))
    return samples


def _suffix(place: Environment, places: list[Environment]) -> str:
    return ", ".join(f"{key}={place.values[key]}" for key in differing(places))
