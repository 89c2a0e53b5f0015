"""What the plots of a study draw: the step times of every cell over its trials, read from the study folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from runner.analysis.evidence import Evidence
from runner.analysis.ratio import pairs_of, step_times
from runner.analysis.sample import Sample, samples_of
from runner.mode import mode_text
from runner.report.family import families, settings_of
from runner.report.words import phase_of
from runner.study import Study

Samples = dict[tuple[str, str | None], Sample]


@dataclass(frozen=True, eq=False)
class Curve:
    """The steps of one cell. `cell` is its part of the summary, `name` its label without what its family shares.

    step_ms: float64 (t, n), a row for each of the `trials` (their numbers) whose speed counts, as long as the shortest.
    first: bool (t, n), whether a step was the first of its input shape.
    pair_ratios: float64 (p,), step time over the baseline's in each round that has both.
    """

    cell: dict[str, Any]
    name: str
    trials: list[int]
    step_ms: np.ndarray
    first: np.ndarray
    pair_ratios: np.ndarray

    @property
    def steps(self) -> int:
        """How many steps every trial took."""
        return len(self.step_ms[0])

    @property
    def steady_ms(self) -> float | None:
        """The mean of the steady step over trials, as the report has it; None where there were too few steps."""
        figure = self.cell["speed"]["step_ms"]
        return figure["mean"] if figure else None

    @property
    def first_ms(self) -> float:
        """The median over trials of the very first step."""
        return float(np.median(self.step_ms[:, 0]))

    @property
    def end_ms(self) -> float:
        """The median of the last steps that are not the first of their shape, where a line ends for the eye."""
        steady = self.step_ms[:, -20:][~self.first[:, -20:]]
        return float(np.median(steady)) if steady.size else self.first_ms

    @property
    def break_even_steps(self) -> float | None:
        """After how many steps tuning has paid, None if it never does or nothing is known."""
        steps = self.cell["speed"]["break_even_steps"]
        return None if steps in (None, "never") else float(steps)

    def steady_over_trials(self, width: int) -> np.ndarray:
        """Float64 (4, m): step from 1, median, least and most over trials, without the first step of each input shape.

        With a width above 1 each of them is over blocks of so many steps, a trial having the median of its block.
        """
        count = ceil(self.steps / width)
        padded = np.full((len(self.trials), count * width), np.nan)
        padded[:, : self.steps] = np.where(self.first, np.nan, self.step_ms)
        blocks = padded.reshape(len(self.trials), count, width)
        known = np.flatnonzero(~np.isnan(blocks).all(axis=(0, 2)))
        with catch_warnings():  # a block of one trial may be of first steps alone
            simplefilter("ignore", RuntimeWarning)
            medians = np.nanmedian(blocks[:, known], axis=2)
        figures = np.nanmedian(medians, axis=0), np.nanmin(medians, axis=0), np.nanmax(medians, axis=0)
        return np.vstack([1 + known * width + (width - 1) / 2, *figures])

    def firsts_over_trials(self) -> np.ndarray:
        """Float64 (4, m): the same of those steps that were the first of an input shape in any trial."""
        steps = np.flatnonzero(self.first.any(axis=0))
        chosen = self.step_ms[:, steps]
        return np.vstack([1 + steps, np.median(chosen, axis=0), chosen.min(axis=0), chosen.max(axis=0)])

    def total_s(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps (m,) from 0, and the seconds (m,) that all steps so far took: the median over trials.

        Beyond the last step taken every further one, up to `until`, is a steady one; without that figure none is told.
        """
        totals = np.concatenate([[0.0], np.median(np.cumsum(self.step_ms, axis=1), axis=0) / 1000])
        steps = np.arange(len(totals))
        if self.steady_ms is None or until <= self.steps:
            return steps, totals
        end = totals[-1] + (until - self.steps) * self.steady_ms / 1000
        return np.append(steps, until), np.append(totals, end)


@dataclass(frozen=True)
class Panel:
    """Cells that differ in the mode alone, in the study's order, and the settings that tell them from other panels."""

    settings: str
    curves: list[Curve]
    phase: str


def samples_in(evidence: Evidence) -> Samples:
    """The samples of a study by cell and environment."""
    samples = samples_of(evidence)
    return {(one.cell.id, one.environment.id if one.environment else None): one for one in samples}


def panels_of(study: Study, summary: dict[str, Any], samples: Samples, most: int) -> list[Panel]:
    """A panel for each family of the summary in which any trial's speed counts, for the first `most` of them."""
    return list(islice(_panels(study, summary, samples), most))


def _panels(study: Study, summary: dict[str, Any], samples: Samples) -> Iterator[Panel]:
    for family in families(summary):
        settings = settings_of(family)
        found = [_curve(study, cell, settings, samples) for cell in family]
        curves = [curve for curve in found if curve]
        if curves:
            yield Panel(", ".join(settings), curves, phase_of(family[0]))


def _curve(study: Study, cell: dict[str, Any], settings: list[str], samples: Samples) -> Curve | None:
    sample = samples.get((cell["cell"], cell["environment"]))
    read = {record.number: study.series_part(record, "step_ms", "shape") for record in sample.timed} if sample else {}
    there = {number: found for number, found in read.items() if found and _drawable(found[0])}
    if sample is None or not there:
        return None
    steps = min(len(step_ms) for step_ms, _ in there.values())
    baseline = samples.get((sample.baseline, cell["environment"]))
    return Curve(
        cell=cell,
        name=", ".join(words for words in cell["label"].split(", ") if words not in settings),
        trials=list(there),
        step_ms=np.stack([step_ms[:steps] for step_ms, _ in there.values()]),
        first=np.stack([_first_of_shape(shape[:steps]) for _, shape in there.values()]),
        pair_ratios=_pair_ratios(sample, baseline),
    )


def _drawable(step_ms: np.ndarray) -> bool:
    return len(step_ms) > 0 and bool(np.isfinite(step_ms).all() and (step_ms > 0).all())


def _first_of_shape(shape: np.ndarray) -> np.ndarray:
    first = np.zeros(len(shape), dtype=bool)
    first[np.unique(shape, return_index=True)[1]] = True
    return first


def _pair_ratios(sample: Sample, baseline: Sample | None) -> np.ndarray:
    if baseline is None or baseline.cell.id == sample.cell.id:
        return np.empty(0)
    pairs = [step_times(pair) for pair in pairs_of(sample, baseline)]
    return np.array([pair[0] / pair[1] for pair in pairs if len(pair) == 2])


def left_out(summary: dict[str, Any], panels: list[Panel]) -> list[str]:
    """In words, which trials of the cells with curves were asked for or are there, and have none."""
    curves = [curve for panel in panels for curve in panel.curves]
    cells = len({cell["cell"] for cell in summary["cells"]})
    there = 1 + max((number for curve in curves for number in curve.trials), default=-1)
    rounds = max(there, (summary["trials"]["asked"] or 0) // max(cells, 1))
    drawn: dict[str, set[int]] = {}
    for curve in curves:  # a cell has several, if it was tried in several environments
        drawn.setdefault(curve.cell["cell"], set()).update(curve.trials)
    names = {curve.cell["cell"]: mode_text(curve.cell["config"]["cudnn"]) for curve in curves}
    absent = {cell: sorted(set(range(rounds)) - numbers) for cell, numbers in drawn.items()}
    return [f"{names[cell]} trial {', '.join(map(str, numbers))}" for cell, numbers in absent.items() if numbers]
