"""From a study to a certificate: which cells can have one, and why others cannot."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from runner.analysis.divergence import divergence
from runner.analysis.environment import differing
from runner.analysis.evidence import Evidence
from runner.analysis.sample import Sample, samples_of
from runner.analysis.side import command_of, facts_of
from runner.analysis.statement import certified_words
from runner.analysis.words import across_words
from runner.certificate import Certificate, Facts
from runner.errors import StudyError
from runner.study import Study


def certificate_of(study: Study, wanted: Sequence[str] = ()) -> Certificate:
    """The certificate of the cells that are wanted, by id or by the beginning of their label; all if none is named.

    Raises StudyError naming every cell that cannot be certified, and why: trials that are missing, failed or damaged,
    too few of them, several environments, or bits that are not the same in all.
    """
    evidence = Evidence.of(study)
    samples = _wanted(samples_of(evidence), wanted)
    if evidence.damaged:
        raise StudyError(f"{study.folder}: cannot be certified, it is damaged: {'; '.join(evidence.damaged)}")
    doubts = [f"{name}: {doubt}" for name, doubt in _doubts(study, samples)]
    if doubts:
        ways_out = f"`python -m runner.why {study.folder}` says why trials differ, --cell leaves cells out"
        raise StudyError(f"{study.folder}: cannot be certified: {'; '.join(doubts)}; {ways_out}")
    asked = study.asked()
    cells = [facts for facts in (facts_of(study, sample) for sample in samples) if facts]
    return Certificate(
        study=evidence.question.id,
        version=str(asked.get("version", "")),
        command=command_of(asked),
        statements=list(map(certified_words, cells)),
        cells=cells,
    )


def _wanted(samples: Sequence[Sample], wanted: Sequence[str]) -> list[Sample]:
    """The samples of the cells that are named; all, if none is."""
    for name in wanted:
        if not any(_is(sample, name) for sample in samples):
            there = "; ".join(f"{sample.cell.id} ({sample.label})" for sample in samples)
            raise StudyError(f"--cell {name}: no cell has this id or a label that begins so; there are {there}")
    return [sample for sample in samples if not wanted or any(_is(sample, name) for name in wanted)]


def _is(sample: Sample, name: str) -> bool:
    return sample.cell.id == name or sample.label.startswith(name)


def _doubts(study: Study, samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
    """Each cell's label with what speaks against its certificate."""
    for sample in samples:
        doubt = _unsound(sample) or _several(sample, samples) or _different(study, sample)
        if doubt is None:
            facts = facts_of(study, sample)
            doubt = _incomplete(facts, len(sample.finished))
        if doubt:
            yield sample.label, doubt


def _unsound(sample: Sample) -> str | None:
    there, failed = len(sample.records), sum(record.failed for record in sample.records)
    if sample.missing:
        return f"{there} of {there + sample.missing} trials are there: it is still at work, or was broken off"
    if failed:
        return f"{failed} of its {there} trials failed: the same command again does them again"
    diverged = there - len(sample.finished)
    return f"{diverged} of its {there} trials diverged" if diverged else None


def _several(sample: Sample, samples: Sequence[Sample]) -> str | None:
    """A certificate speaks of one environment."""
    places = [one.environment for one in samples if one.cell.id == sample.cell.id and one.environment]
    return (
        f"its trials come from {len(places)} environments ({', '.join(differing(places))})" if len(places) > 1 else None
    )


def _different(study: Study, sample: Sample) -> str | None:
    series = [one for one in map(study.series, sample.finished) if one]
    found = divergence(sample.finished, series, sample.cell.phase)
    if found.verdict == "bitwise":
        return None
    if found.verdict == "single":
        return "there is one trial, at least two are needed"
    seeds = f" (by design the seeds differ: {', '.join(found.seeds_varied)})" if found.seeds_varied else ""
    return f"{across_words(asdict(found))}{seeds}"


def _incomplete(facts: Facts | None, finished: int) -> str | None:
    """Trials without a series, or whose series is another one although all digests are the same."""
    if facts is None or facts.processes < finished:
        return "not every trial has its series"
    return None if len(facts.bits) == 1 else "its records and series do not fit together"
