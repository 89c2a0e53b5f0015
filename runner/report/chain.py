"""The chain of evidence of a study: for each cell that does not repeat rung by rung, and the commands that go on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runner.analysis.command import deeper, done_in, trying
from runner.analysis.words import ON_PURPOSE, only_steps
from runner.report.text import one_line
from runner.report.why import accuracy_lines, cell_kernel_words, change_lines, lead, shapes_words, size_words
from runner.report.words import verdict_words, within_words

MOST_STEPS = 20  # a trace of the operations of more steps takes long, one of modules does not
MOST_CHARACTERS = 160  # of a reason
PARTED = ("diverged", "failed", "timed_out", "interrupted")


@dataclass(frozen=True)
class _Study:
    """What commands that go on from a cell are made of: the study's own command, its folder and its cells."""

    command: Sequence[str]
    folder: str
    cells: Sequence[dict[str, Any]]

    def folder_of(self, cell: dict[str, Any]) -> str:
        """The folder beside which another study of this cell is to lie: one of its own, where there are several."""
        return f"{self.folder}-{cell['cell'][:6]}" if self.folder and len(self.cells) > 1 else self.folder


def chain(summary: dict[str, Any], command: Sequence[str], folder: str = "") -> list[str]:
    """The lines of all cells, those that differ first; `command` is the study's own, `folder` where it lies."""
    cells = summary["cells"]
    study = _Study(command, folder, cells)
    differing = [cell for cell in cells if _differs(cell)]
    lines = [line for cell in differing for line in (*_cell(cell, study), "")]
    for cell in cells:
        if cell not in differing:
            lines.append(one_line(f"{cell['label']}: {verdict_words(cell)}"))
    changed = [f"what the change did: {words}" for words in change_lines(summary)]
    return [*lines, *map(one_line, (*accuracy_lines(summary), *changed, *summary["damaged"]))]


def _differs(cell: dict[str, Any]) -> bool:
    """Whether there is more to say of a cell than that it repeats: a file of its probe may be damaged."""
    damaged = cell["kernels"] and cell["kernels"]["damaged"]
    told = cell["traces"] or damaged or cell["unfinished"]
    return bool(told) or cell["reproducibility"]["verdict"] not in ("bitwise", "single", None)


def _cell(cell: dict[str, Any], study: _Study) -> Iterator[str]:
    yield one_line(f"{cell['label']}: {verdict_words(cell)}")
    for name, words in _rungs(cell):
        yield f"  {name:<11} {one_line(words)}"
    for advice in cell["advice_above"]:
        yield from _tried(advice, cell, study)
    for name, words in _traced(cell["traces"]):
        yield f"  {name:<11} {one_line(words)}"
    for number, one in enumerate(cell["traces"]["findings"] if cell["traces"] else [], 1):
        yield f"  {number:>3}. {one_line(one['words'])}"
        for name, words in (("tensors", shapes_words(one)), ("size", size_words(one))):
            if words:
                yield f"       {name}: {one_line(words)}"
        for advice in one["advice"]:
            yield from _tried(advice, cell, study)
    yield from (f"  {'kernels':<11} {one_line(words)}" for words in cell_kernel_words(cell))
    yield from _go_on(cell, study)


def _rungs(cell: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each rung of the ladder above the traces with what was seen on it, from the start down."""
    seen, found = cell["reproducibility"], cell["traces"]
    n = seen["trials"]
    yield from (("trials", words) for words in _unfinished(cell))
    if within_words(cell):
        yield "in process", within_words(cell)
    if n > 1:
        data, loss = seen["first_data_step"], seen["first_loss_step"]
        yield "start", f"equal in {n} of {n}" if seen["same_start"] else _other_start(found)
        fewest = seen["fewest_steps"]
        if fewest is not None:
            yield "steps", f"different numbers of them: none took fewer than {fewest}, some took more"
        yield "data", f"differ first at step {data}" if data else "equal in every step"
        if cell["config"].get("phase") != "calls":
            yield "losses", f"differ first at step {loss}" if loss else "equal in every step"
        if cell.get("gradients_differ_in"):
            yield "gradients", f"differ first in step {cell['gradients_differ_in']}, of steps 1, 2, 4, 8, ..."
        yield seen["subject"], _part(seen)
        if cell["config"].get("phase") not in ("attach", "calls"):
            yield "evaluation", "equal" if seen["same_evaluation"] else _evaluation(seen)
    if seen.get("poked"):
        yield "changed", f"by design {ON_PURPOSE}: another weight in each (train.poke)"
    if seen["seeds_varied"]:
        yield "seeds", f"by design these vary from trial to trial: {', '.join(seen['seeds_varied'])}"


def _traced(found: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """What the traces show; the last line announces the findings."""
    if found:
        yield from (("note", note) for note in found["notes"])
        yield from (("left out", message) for message in found["damaged"])
        if found["first_not_finite"]:
            yield "not finite", found["first_not_finite"]["words"]
        thing = {"ops": "operations", "modules": "modules"}[found["level"]]
        yield thing, f"{found['operations']} compared in {found['trials']} trials, {_found(found['findings'])}"


def _unfinished(cell: dict[str, Any]) -> Iterator[str]:
    """How many trials did not finish, by outcome, with the first one's reason."""
    for outcome in PARTED:
        there = [one for one in cell["unfinished"] if one["outcome"] == outcome]
        if there:
            reason = there[0]["reason"] or "no reason given"
            yield f"{len(there)} {outcome.replace('_', ' ')}, {cell['n']} finished: {reason[:MOST_CHARACTERS]}"


def _other_start(found: dict[str, Any] | None) -> str:
    """That the weights differ before the first step, and which operations read them first, where a trace knows."""
    readers = found["start_readers"] if found else []
    return f"initial weights differ, first read by {', '.join(readers)}" if readers else "initial weights differ"


def _evaluation(seen: dict[str, Any]) -> str:
    """What is said of an evaluation that differs: of its own, where the weights do not."""
    if seen["fewest_steps"] is not None:
        return "not compared: it comes after different numbers of steps"
    if seen["verdict"] != "metric-only":
        return "differs"
    return "differs with equal weights; probes trace training alone: look at what is random in the model's eval mode"


def _found(findings: list[dict[str, Any]]) -> str:
    """How many findings follow; only a rung of its own says of each what it is about."""
    if not findings:
        return "none differs on equal inputs"
    if any(one["rung"] != "operation" for one in findings):
        return f"{len(findings)} found:"
    return f"{len(findings)} {'differs' if len(findings) == 1 else 'differ'} on equal inputs:"


def _part(seen: dict[str, Any]) -> str:
    if seen["weights_differ_after"] is None:
        return "equal" if seen["fewest_steps"] is None else "equal in the steps that all took; later ones not compared"
    equal = f"equal after step {seen['weights_equal_after']}, " if seen["weights_equal_after"] is not None else ""
    return f"{equal}differ after step {seen['weights_differ_after']}"


def _tried(advice: dict[str, Any], cell: dict[str, Any], study: _Study) -> Iterator[str]:
    """An advice, and the command that tries it, unless the study has both of its arms."""
    change, config = advice["change"], cell["config"]
    yield f"       {lead(change)}: {one_line(advice['words'])} [{advice['source']}]"
    if change:
        done = next((one for one in study.cells if done_in(one["config"], config, change)), None)
        if done:
            yield f"         is in this study: {one_line(done['label'])}: {verdict_words(done)}"
        else:
            yield f"         {trying(study.command, config, change, study.folder_of(cell))}"


def _go_on(cell: dict[str, Any], study: _Study) -> Iterator[str]:
    """The command that looks deeper, where there is more to see than was seen."""
    found, seen, config = cell["traces"], cell["reproducibility"], cell["config"]
    step = seen["first_diverging_step"]
    if seen.get("poked") or only_steps(seen):
        return
    if not step or seen["first_data_step"] == step:  # start or data: no operation is to blame
        return
    if config.get("phase") == "attach":
        yield "  look deeper: probes see no attached script; train its model with model=custom, see docs/attach.md"
        return
    if config.get("phase") == "calls":
        yield "  look deeper: probes see no calls; train the model with phase=train, or see its kernels"
        return
    compiled = config.get("train", {}).get("compile", "off") != "off"
    level = "modules" if compiled or step > MOST_STEPS else "ops"
    if found and (found["level"] in ("ops", level)) and (found["findings"] or step <= config["probe"]["steps"]):
        return
    yield f"  look deeper, into the first {'step' if step == 1 else f'{step} steps'}:"
    yield f"         {deeper(study.command, config, step, level, study.folder_of(cell))}"
