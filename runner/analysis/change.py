"""What a change did: whether the later of two cells repeats where the earlier did not, and what that costs a step.

Two cells are a change if they differ in `determinism` alone; in a study of two cells, if they differ in the settings of
one training of the same model on the same data. This is how an advice is proved: both arms in one study, each round on
the same device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from runner.analysis.divergence import divergence
from runner.analysis.environment import ENVIRONMENT, Environment
from runner.analysis.evidence import Evidence
from runner.analysis.ratio import Ratio, compare, decide
from runner.analysis.sample import Sample
from runner.analysis.words import across_words, percent, ratio_end
from runner.cell import Cell, flatten
from runner.jsonfile import canonical

FILLED = "strict mode also fills new memory: that hides a read of what nobody wrote, and does not repair it"
SETTINGS = ("determinism", "cudnn", "precision", "threads", "isolation", "train")
IDENTITY = {f"{group}.{key}" for group in ("model", "dataset") for key in ("name", "_target_")}
# What a change of settings changes in the environment itself: trials that differ in no more can still be paired.
MOVED = ("threads", "conv_precision", "rnn_precision", "matmul_precision", "workspace", "code")


def changes(samples: Sequence[Sample], evidence: Evidence) -> list[dict[str, Any]]:
    """Each change of a study: its cells and labels, both verdicts, the ratio of after to before, and all in words.

    The first of several cells that differ in `determinism` alone is the one before all others.
    """
    found = []
    for before, afters in _changed(samples, evidence):
        comparisons = len({after.cell.id for after in afters})
        found += [_change(before, after, comparisons, evidence) for after in afters]
    return found


def _changed(samples: Sequence[Sample], evidence: Evidence) -> Iterator[tuple[Sample, list[Sample]]]:
    """Every sample that is the one before, with those after it in the same environment."""
    if len(evidence.cells) == 2 and _is_change(*evidence.cells):
        groups = [list(samples)]
    else:
        by_rest: dict[str, list[Sample]] = {}
        for sample in samples:
            by_rest.setdefault(canonical(sample.cell.config | {"determinism": None}), []).append(sample)
        groups = list(by_rest.values())
    for group in groups:
        for before in group:
            afters = [one for one in group if one.cell.id != before.cell.id and _here(one) == _here(before)]
            if before.cell.id == group[0].cell.id and afters:
                yield before, afters


def _is_change(one: Cell, other: Cell) -> bool:
    """Whether two cells do the same in another way: one option of the same model or data set may differ too."""
    here, there = flatten(one.config), flatten(other.config)
    keys = {key for key in here | there if (key in here, here.get(key)) != (key in there, there.get(key))}
    options = {key for key in keys if key.startswith(("model.", "dataset."))}
    same_training = all(key.startswith(SETTINGS) for key in keys - options)
    return same_training and len(options) <= 1 and not options & IDENTITY


def _here(sample: Sample) -> str | None:
    """The environment but for what a change moves, as one text; None while no trial has trained."""
    return _rest(sample.environment) if sample.environment else None


def _rest(environment: Environment) -> str:
    return canonical({key: environment.values[key] for key in ENVIRONMENT if key not in MOVED})


def _change(before: Sample, after: Sample, comparisons: int, evidence: Evidence) -> dict[str, Any]:
    said = _settings_changed(before, after)
    ratio = compare(after, before, comparisons, evidence.question.plan.margin, evidence.looks)
    if ratio.verdict == "inert" and any(not key.startswith("cudnn.") for key in said):
        ratio = replace(ratio, verdict=decide(ratio.ci95, evidence.question.plan.margin))
    verdicts = [_verdict(sample) for sample in (before, after)]
    found = {
        "before": before.cell.id,
        "after": after.cell.id,
        "labels": [before.label, after.label],
        "settings": [f"{key}={text}" for key, text in said.items()],
        "verdicts": [verdict["verdict"] for verdict in verdicts],
        "ratio": asdict(ratio),
    }
    return found | {"words": _words(before, after, list(map(across_words, verdicts)), ratio, evidence)}


def _settings_changed(before: Sample, after: Sample) -> dict[str, str]:
    old, new = flatten(before.cell.config), flatten(after.cell.config)
    return {key: canonical(value).strip('"') for key, value in new.items() if key not in old or old[key] != value}


def _fills(sample: Sample) -> bool:
    """Whether new memory is filled with NaN: strict mode does it, if asked."""
    determinism = sample.cell.config.get("determinism", {})
    return bool(determinism.get("algorithms") and determinism.get("fill_memory"))


def _verdict(sample: Sample) -> dict[str, Any]:
    return asdict(divergence(sample.finished, [], sample.cell.phase))


def _words(before: Sample, after: Sample, verdicts: list[str], ratio: Ratio, evidence: Evidence) -> str:
    was, became = verdicts
    bits = f"{was} before and after" if was == became else f"{was} before; {became} after"
    if became.startswith("bitwise") and was != became and _fills(after) and not _fills(before):
        bits += f" ({FILLED})"
    cost = _cost(ratio, evidence.question.plan.margin, after.cell.phase)
    return f"from {before.label} to {after.label}: {bits}; {cost}"


def _cost(ratio: Ratio, margin: float, phase: str) -> str:
    """What a step takes after the change, of what it took before."""
    subject = {"infer": "an answer", "calls": "a call"}.get(phase, "a step")
    if ratio.value is None:
        return f"its cost is not known: {ratio.why}"
    if ratio.verdict == "inert":
        return "the flags cannot act here without CUDA"
    interval = f" [{', '.join(map(ratio_end, ratio.ci95))}]" if ratio.ci95 else ""
    unpaired = "" if ratio.paired else f", unpaired ({ratio.why})"
    figure = f"{ratio.value:.3f}{interval} times{unpaired}"
    if ratio.verdict == "undecided":
        return f"what it costs is undecided: {subject} takes {figure}"
    if ratio.verdict == "equivalent":
        return f"it costs nothing beyond {percent(margin)}: {subject} takes {figure}"
    share = percent(abs(ratio.value - 1))
    return f"{subject} takes {share} {'more' if ratio.value > 1 else 'less'} time: {figure}"
