"""The summary of a study: the statistics of every cell and what follows, as summary.json holds them."""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from runner.analysis.accuracy import CellCaptures, accuracies
from runner.analysis.advice import advice_above
from runner.analysis.calls import call_figures
from runner.analysis.candidate import Candidate
from runner.analysis.change import changes
from runner.analysis.cost import Cost, cost_of
from runner.analysis.divergence import Divergence, divergence
from runner.analysis.doctor import findings, gradients_differ_in
from runner.analysis.ensemble import Ensemble, ensemble
from runner.analysis.environment import INSTANCE, Environment
from runner.analysis.evidence import Evidence
from runner.analysis.figure import Figure
from runner.analysis.flags import flag_mismatches, not_deterministic
from runner.analysis.kernel_summary import CellKernels, changes_between
from runner.analysis.looks import MOST_ROUNDS, Looks
from runner.analysis.measured import Measurement
from runner.analysis.noise import modes_noise, seeds_noise
from runner.analysis.ratio import compare, self_ratio
from runner.analysis.recipe import beside, replication_of
from runner.analysis.recommendation import QUESTIONS, recommend
from runner.analysis.sample import Sample, samples_of
from runner.analysis.speed import SpeedFigures, speed_figures
from runner.analysis.variance import Pairwise, disagreement, unit_weight_distance, weight_distance
from runner.analysis.why import CellTraces, why
from runner.record import Record
from runner.series import Series
from runner.study import Study

SCHEMA = 1


@dataclass(frozen=True)
class CellSummary:
    """Everything computed about one cell in one environment, over its finished trials."""

    sample: Sample
    speed: SpeedFigures
    cost: Cost
    divergence: Divergence
    disagreement: Pairwise | None
    weight_l2: Pairwise | None
    unit_weight_l2: Pairwise | None
    metrics: dict[str, Figure]
    ensemble: Ensemble | None
    why: dict[str, Any] | None
    captured: CellCaptures | None
    kernels: CellKernels


def summarise(study: Study, evidence: Evidence | None = None) -> dict[str, Any]:
    """The summary of a study (schema 1), over the trials that can be used; `damaged` names the others.

    `evidence` is what was read of the study already. Raises StudyError if what was asked is damaged itself.
    """
    evidence = evidence or Evidence.of(study)
    samples = samples_of(evidence)
    families: dict[str, list[Sample]] = {}
    for sample in samples:
        families.setdefault(sample.baseline, []).append(sample)
    summaries = [_cell_summary(study, evidence, sample, families[sample.baseline]) for sample in samples]
    recommendations = _recommendations(summaries, evidence)
    cells = [_cell(summary) for summary in summaries]
    return {
        "schema": SCHEMA,
        "study": evidence.question.id,
        "plan": asdict(evidence.question.plan),
        "looks": _looks(evidence.looks),
        "margin": evidence.question.plan.margin,
        "most_rounds": MOST_ROUNDS,
        **_completeness(evidence),
        "environments": _environments(samples),
        "cells": cells,
        "noise": [asdict(line) for line in seeds_noise(samples)],
        "modes_noise": [asdict(line) for line in modes_noise(samples)],
        "recommendation": _one_answer(recommendations),
        "recommendations": recommendations,
        "changes": changes(samples, evidence),
        "doctor": findings(evidence.records),
        "accuracy": accuracies([summary.captured for summary in summaries if summary.captured]),
        "kernel_changes": changes_between([summary.kernels for summary in summaries]),
        "recipe": beside(
            replication_of(study), _measurements(study, samples, cells, evidence), evidence.question.rounds
        ),
    }


def _measurements(
    study: Study, samples: list[Sample], cells: list[dict[str, Any]], evidence: Evidence
) -> list[Measurement]:
    margin, looks = evidence.question.plan.margin, evidence.looks
    return [
        Measurement(sample, cell, margin, looks, partial(_series, study, sample))
        for sample, cell in zip(samples, cells, strict=True)
    ]


def _looks(looks: Looks) -> dict[str, Any]:
    """The looks and the share of this one; the rounds of the look whose ratios count, and the next planned one."""
    return {"at": list(looks.at), "share": looks.share, "counting": looks.counting.at[-1], "next": looks.next_at}


def _completeness(evidence: Evidence) -> dict[str, Any]:
    rounds, there = evidence.question.rounds, len(evidence.records)
    return {
        "trials": {"asked": None if rounds is None else rounds * len(evidence.cells), "there": there},
        "partial": any(evidence.missing(cell.id) for cell in evidence.cells),
        "damaged": evidence.damaged,
    }


def _cell_summary(study: Study, evidence: Evidence, sample: Sample, family: list[Sample]) -> CellSummary:
    finished = sample.finished
    series = _series(study, sample)
    found, traced = divergence(finished, series, sample.cell.phase, sample.cell.poked), CellTraces.of(study, sample)
    return CellSummary(
        sample=sample,
        speed=_speed(evidence, sample, family),
        cost=cost_of(sample, evidence.question.plan.steps),
        divergence=found,
        disagreement=disagreement(series),
        weight_l2=weight_distance(series),
        unit_weight_l2=unit_weight_distance(series),
        metrics=_metrics(finished),
        ensemble=_ensemble(study, sample),
        why=why(traced, found),
        captured=traced.captured,
        kernels=CellKernels.of(study, sample),
    )


def _series(study: Study, sample: Sample) -> list[Series]:
    return [one for one in (study.series(record) for record in sample.finished) if one is not None]


def _ensemble(study: Study, sample: Sample) -> Ensemble | None:
    """What two trials would say together, where their logits were to be kept."""
    keep = sample.cell.config.get("train", {}).get("keep_logits", False)
    return ensemble([study.logits(record) for record in sample.finished]) if keep else None


def _speed(evidence: Evidence, sample: Sample, family: list[Sample]) -> SpeedFigures:
    comparisons, looks = {one.cell.id for one in family} - {sample.baseline}, evidence.looks
    if sample.cell.id == sample.baseline:
        return speed_figures(sample, sample, self_ratio(sample, looks.counting.level(len(comparisons))))
    here = (one for one in family if one.environment == sample.environment)
    baseline = next((one for one in here if one.cell.id == sample.baseline), None)
    ratio = compare(sample, baseline, len(comparisons), evidence.question.plan.margin, looks)
    return speed_figures(sample, baseline, ratio)


def _metrics(finished: list[Record]) -> dict[str, Figure]:
    names = dict.fromkeys(name for record in finished for name in record.metrics)
    return {name: Figure.of([record.metrics.get(name) for record in finished]) for name in names}


def _environments(samples: list[Sample]) -> list[dict[str, Any]]:
    """Each environment with its finished trials and the instances (hosts, GPUs, revisions) met in it."""
    environments: dict[str, Environment] = {}
    finished: dict[str, list[Record]] = {}
    for sample in samples:
        if sample.environment:
            environments[sample.environment.id] = sample.environment
            finished.setdefault(sample.environment.id, []).extend(sample.finished)
    return [
        {"id": name, "trials": len(finished[name]), **_instances(finished[name]), **environment.values}
        for name, environment in environments.items()
    ]


def _instances(records: list[Record]) -> dict[str, list[str]]:
    found = {key: {record.environment.get(key) for record in records} - {None} for key in INSTANCE}
    return {f"{key}s": sorted(map(str, values)) for key, values in found.items()}


def _cell(summary: CellSummary) -> dict[str, Any]:
    sample, speed = summary.sample, asdict(summary.speed) | {"expected_s": summary.cost.expected_s}
    outcomes = Counter(record.outcome for record in sample.records)
    return {
        "cell": sample.cell.id,
        "label": sample.label,
        "config": sample.cell.config,
        "environment": sample.environment.id if sample.environment else None,
        "n": outcomes["finished"],
        "failed": sum(record.failed for record in sample.records),
        "diverged": outcomes["diverged"],
        "missing": sample.missing,
        "unfinished": [
            {"trial": record.number, "outcome": record.outcome, "reason": record.reason} for record in sample.unfinished
        ],
        "flag_mismatch": flag_mismatches(sample.records),
        "not_deterministic": not_deterministic(sample.records),
        "gradients_differ_in": gradients_differ_in(sample.finished),
        "reproducibility": _reproducibility(summary),
        "ensemble": summary.ensemble.summary() if summary.ensemble else None,
        "speed": speed,
        "metrics": {name: asdict(figure) for name, figure in summary.metrics.items()},
        "traces": summary.why,
        "kernels": summary.kernels.summary(),
        "advice_above": list(map(asdict, advice_above(summary.divergence, sample.cell.config))),
        **call_figures(sample, summary.kernels.uses),
    }


def _reproducibility(summary: CellSummary) -> dict[str, Any]:
    found = summary.divergence
    churn, distance, unit = summary.disagreement, summary.weight_l2, summary.unit_weight_l2
    return asdict(found) | {
        "bound_95": found.bound_95,
        "bound_95_new_start": found.bound_95_new_start,
        "first_diverging_step": found.first_diverging_step,
        "sentence": found.sentence,
        "disagreement": churn.mean if churn else None,
        "disagreement_ci95": churn.ci95 if churn else None,
        "weight_l2": distance.mean if distance else None,
        "weight_l2_ci95": distance.ci95 if distance else None,
        "unit_weight_l2": unit.mean if unit else None,
        "unit_weight_l2_ci95": unit.ci95 if unit else None,
    }


def _recommendations(summaries: list[CellSummary], evidence: Evidence) -> list[dict[str, Any]]:
    """One answer for each set of cells that share baseline and environment: they differ in `cudnn` alone."""
    groups: dict[tuple[str, str | None], list[CellSummary]] = {}
    tried = [summary for summary in summaries if summary.sample.environment]
    for summary in tried or summaries:  # a cell without a trained trial has no place, and no answer, of its own
        environment = summary.sample.environment
        key = summary.sample.baseline, environment.id if environment else None
        groups.setdefault(key, []).append(summary)
    return [
        {
            "settings": _settings(group),
            "cells": [one.sample.cell.id for one in group],
            **recommend(_candidates(group), evidence.question.plan, evidence.looks),
        }
        for group in groups.values()
    ]


def _settings(group: list[CellSummary]) -> str:
    """What the labels of all cells of a group say after the mode."""
    first, *others = [one.sample.label.split(", ") for one in group]
    return ", ".join(part for part in first[1:] if all(part in other for other in others))


def _candidates(group: list[CellSummary]) -> list[Candidate]:
    return [
        Candidate(one.sample, one.speed, one.cost, one.divergence, not flag_mismatches(one.sample.records))
        for one in group
    ]


def _one_answer(recommendations: list[dict[str, Any]]) -> dict[str, Any]:
    answers = [{name: found[name] for name in QUESTIONS} for found in recommendations]
    if all(answer == answers[0] for answer in answers[1:]):
        return answers[0]
    several = {"undecided": f"there are {len(answers)} settings, each with its own answer: see recommendations"}
    return dict.fromkeys(QUESTIONS, several)
