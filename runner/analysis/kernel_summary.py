"""The kernels of a study's cells as summary.json has them: what trials chose, and what changes from mode to mode."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from runner.analysis.kernel_choice import choice_words, lines
from runner.analysis.kernels import cudnn_words, kernel_changes, kernels_of
from runner.analysis.readable import readable
from runner.analysis.sample import Sample
from runner.kernel_use import KernelUse
from runner.study import Study


@dataclass(frozen=True)
class CellKernels:
    """What the trials of one cell in one environment ran, and what is wrong with the files that cannot be read."""

    sample: Sample
    uses: list[KernelUse]
    damaged: list[str]

    @classmethod
    def of(cls, study: Study, sample: Sample) -> "CellKernels":
        """Read a cell's kernels: there are none but with probe=kernels and of calls."""
        looked = sample.cell.probe == "kernels" or sample.cell.phase == "calls"
        uses, damaged = readable(sample.finished if looked else [], study.kernels)
        return cls(sample, uses, damaged)

    def summary(self) -> dict[str, Any] | None:
        """The kernels that any trial ran, what trials chose differently, and all in words; None without any."""
        if not self.uses:
            return {"damaged": self.damaged, "words": []} if self.damaged else None
        found = kernels_of(self.uses)
        words = [cudnn_words(found), *lines(found.choices), *found.unlike]
        return asdict(found) | {"inert": found.inert, "words": words, "damaged": self.damaged}


def changes_between(cells: Sequence[CellKernels]) -> list[dict[str, Any]]:
    """For each pair of cells that differ in the mode alone, and ran in one environment, what runs other kernels."""
    found = []
    for before, after in combinations([one for one in cells if one.uses], 2):
        if _place(before) == _place(after):
            choices = kernel_changes(before.uses, after.uses)
            found.append(
                {
                    "before": before.sample.cell.id,
                    "after": after.sample.cell.id,
                    "labels": [before.sample.label, after.sample.label],
                    "choices": [asdict(one) | {"words": choice_words(one)} for one in choices],
                    "words": lines(choices),
                }
            )
    return found


def _place(one: CellKernels) -> tuple[str, str | None]:
    sample = one.sample
    return sample.baseline, sample.environment.id if sample.environment else None
