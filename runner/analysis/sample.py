"""A sample: the trials of one cell in one environment, which is what may be pooled."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

from runner.analysis.contention import timed
from runner.analysis.environment import Environment, differing, environments_of
from runner.analysis.evidence import Evidence
from runner.cell import Cell, labels
from runner.record import Record


@dataclass(frozen=True)
class Sample:
    """The trials of one cell in one environment, by number; `environment` is None while none has trained.

    `baseline` is the id of the cell it is compared with, see `baselines`; the study need not have that cell. `missing`
    counts the cell's trials that were asked for and have no usable record, with its first environment only.
    """

    cell: Cell
    label: str
    environment: Environment | None
    records: list[Record]
    baseline: str
    missing: int = 0

    @property
    def finished(self) -> list[Record]:
        """The trials over which figures are computed."""
        return [record for record in self.records if record.complete]

    @cached_property
    def timed(self) -> list[Record]:
        """The finished trials whose speed counts: all figures of speed are computed over these."""
        return [] if self.probed else timed(self.records)

    @property
    def probed(self) -> bool:
        """Whether a probe looked into the steps, so that no trial's speed counts."""
        return self.cell.probe != "none"

    @property
    def unfinished(self) -> list[Record]:
        """The trials that failed, timed out, diverged or were interrupted."""
        return [record for record in self.records if not record.complete]

    @property
    def benchmarks(self) -> bool:
        """Whether cuDNN measures its kernels anew for every input size."""
        cudnn = self.cell.config["cudnn"]
        return bool(cudnn["benchmark"] and cudnn["enabled"])

    @property
    def tunes(self) -> bool:
        """Whether every process chooses kernels by measuring them, so that another one may choose others: a plan."""
        return self.benchmarks or self.cell.config.get("train", {}).get("compile") == "max-autotune"

    @property
    def cuda(self) -> bool | None:
        """Whether CUDA was in use, None while unknown."""
        return self.environment.cuda if self.environment else None


def samples_of(evidence: Evidence) -> list[Sample]:
    """Every cell once for each environment in which it was tried, in the study's order; once if in none."""
    cells, records = evidence.cells, evidence.records
    environments, names, defaults = environments_of(records), labels(cells), baselines(cells)
    own: dict[str, list[Record]] = {name: [] for name in names}
    for record in records:
        own[record.cell].append(record)
    whole = [
        Sample(cell, names[cell.id], None, own[cell.id], defaults[cell.id], evidence.missing(cell.id)) for cell in cells
    ]
    return [sample for one in whole for sample in _split(one, environments)]


def baselines(cells: list[Cell]) -> dict[str, str]:
    """For each cell's id that of its baseline: the pair (F,F) with the same other settings.

    Where no cell has these, one that differs in `benchmark_limit` alone serves: a limit cannot act without benchmark.
    """
    exact = {cell.id: _default(cell) for cell in cells}
    but_limit = {cell.id: _default(cell, benchmark_limit=None) for cell in cells}
    serving = {but_limit[cell.id]: cell.id for cell in reversed(cells) if exact[cell.id] == cell.id}
    return {name: own if own in exact else serving.get(but_limit[name], but_limit[name]) for name, own in exact.items()}


def _default(cell: Cell, **changes: Any) -> str:
    cudnn = cell.config["cudnn"] | {"deterministic": False, "benchmark": False} | changes
    return Cell(cell.config | {"cudnn": cudnn}).id


def _split(whole: Sample, known: dict[str, Environment]) -> list[Sample]:
    ids = [Environment.of(record).id for record in whole.records]
    places = [known[name] for name in known if name in ids]
    if len(places) < 2:
        return [replace(whole, environment=places[0] if places else None)]
    samples = []
    for index, place in enumerate(places):
        # A trial which died before it knew its environment is counted with the first, so that it is not lost.
        here = [name == place.id or (not index and name not in known) for name in ids]
        label, records = f"{whole.label}, {_suffix(place, places)}", list(compress(whole.records, here))
        missing = 0 if index else whole.missing
        samples.append(replace(whole, label=label, environment=place, records=records, missing=missing))
    return samples


def _suffix(place: Environment, places: list[Environment]) -> str:
    return ", ".join(f"{key}={place.values[key]}" for key in differing(places))
