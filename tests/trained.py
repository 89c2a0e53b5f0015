"""Samples and candidates from step times and first steps, for what follows from speed alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from factory import GPU, make_cell, make_record

from runner.analysis.candidate import Candidate
from runner.analysis.cost import cost_of
from runner.analysis.divergence import divergence
from runner.analysis.environment import Environment
from runner.analysis.looks import Looks
from runner.analysis.ratio import compare, self_ratio
from runner.analysis.recommendation import recommend
from runner.analysis.sample import Sample, baselines
from runner.analysis.speed import speed_figures
from runner.mode import mode_text
from runner.plan import USUAL, Plan


def sample_of(
    mode: str, step_ms: Sequence[float | None], first_ms: float = 500.0, digests: str = "same", **speed: Any
) -> Sample:
    """A sample of one trial a step time; `digests` of the weights are the "same" in all trials, or "own"."""
    cell, records = make_cell(mode, train={"batch_size": 10}), []
    for number, value in enumerate(step_ms):
        record = make_record(cell, number, environment=dict(GPU))
        assert record.speed is not None
        assert record.digests is not None
        final = record.digests.final if digests == "same" else f"{number:032x}"
        times = replace(record.speed, step_ms=value, first_step_ms=first_ms, **speed)
        records.append(replace(record, speed=times, digests=replace(record.digests, final=final, steps={})))
    environment = Environment.of(records[0]) if records else None
    return Sample(cell, mode_text(cell.config["cudnn"]), environment, records, baselines([cell])[cell.id])


def answers(samples: Sequence[Sample], plan: Plan = USUAL, rounds: Sequence[int] = (20,)) -> dict[str, Any]:
    """What is recommended among these samples, the first of them the default."""
    looks, base = Looks.of(rounds), samples[0]
    candidates = []
    for one in samples:
        ratio = self_ratio(one, 0.95) if one is base else compare(one, base, len(samples) - 1, plan.margin, looks)
        figures = speed_figures(one, base, ratio)
        candidates.append(Candidate(one, figures, cost_of(one, plan.steps), divergence(one.finished, []), True))
    return recommend(candidates, plan, looks)


def noisy(value: float, n: int, seed: int, noise: float = 0.002) -> list[float]:
    """So many values about one, with log-normal noise."""
    return [float(one) for one in value * np.exp(np.random.default_rng(seed).normal(0, noise, n))]


def h200_unet(n: int = 10, noise: float = 0.0001) -> list[Sample]:
    """The U-Net on an NVIDIA H200 in IEEE fp32: step and first step in ms as measured, with some noise."""
    measured: Mapping[str, tuple[float, float, str]] = {
        "default": (121.2, 590.0, "own"),
        "benchmark": (95.0, 11_900.0, "own"),
        "deterministic": (143.2, 540.0, "same"),
        "deterministic_benchmark": (101.4, 11_600.0, "same"),
    }
    return [
        sample_of(mode, noisy(step_ms, n, seed, noise), first_ms, digests)
        for seed, (mode, (step_ms, first_ms, digests)) in enumerate(measured.items())
    ]
