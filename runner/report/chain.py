"""The chain of evidence of a study: for each cell that does not repeat rung by rung, and the commands that go on."""

from collections.abc import Iterator, Sequence
from typing import Any

from runner.analysis.command import deeper, trying
from runner.report.text import one_line
from runner.report.why import accuracy_lines, captured_words, cell_kernel_words, change_lines, left_out, shapes_words
from runner.report.words import verdict_words

MOST_STEPS = 20  # a trace of the operations of more steps takes long, one of modules does not


def chain(summary: dict[str, Any], command: Sequence[str]) -> list[str]:
    """The lines of all cells, those that differ first; `command` is the study's own."""
    cells = summary["cells"]
    differing = [cell for cell in cells if _differs(cell)]
    lines = [line for cell in differing for line in (*_cell(cell, command), "")]
    for cell in cells:
        if cell not in differing:
            lines.append(one_line(f"{cell['label']}: {verdict_words(cell)}"))
    changed = [f"what the change did: {words}" for words in change_lines(summary)]
    return [*lines, *map(one_line, (*accuracy_lines(summary), *changed, *summary["damaged"]))]


def _differs(cell: dict[str, Any]) -> bool:
    """Whether there is more to say of a cell than that it repeats: a file of its probe may be damaged."""
    damaged = cell["kernels"] and cell["kernels"]["damaged"]
    return bool(cell["why"] or damaged) or cell["reproducibility"]["verdict"] not in ("bitwise", "single", None)


def _cell(cell: dict[str, Any], command: Sequence[str]) -> Iterator[str]:
    found, config = cell["why"], cell["config"]
    yield one_line(f"{cell['label']}: {verdict_words(cell)}")
    for name, words in _rungs(cell):
        yield f"  {name:<11} {one_line(words)}"
    for advice in cell["advice_above"]:
        yield from _tried(advice, config, command)
    if found:
        for number, one in enumerate(found["findings"], 1):
            yield f"  {number:>3}. {one_line(one['words'] + shapes_words(one) + captured_words(one))}"
            for advice in one["advice"]:
                yield from _tried(advice, config, command)
    yield from (f"  {'kernels':<11} {one_line(words)}" for words in cell_kernel_words(cell))
    yield from _go_on(cell, command)


def _rungs(cell: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each rung of the ladder with what was seen on it, from the start down."""
    seen, found = cell["reproducibility"], cell["why"]
    n = seen["trials"]
    if n > 1:
        data, loss = seen["first_data_step"], seen["first_loss_step"]
        yield "start", f"equal in {n} of {n}" if seen["same_start"] else "initial weights differ"
        yield "data", f"differ first at step {data}" if data else "equal in every step"
        yield "losses", f"differ first at step {loss}" if loss else "equal in every step"
        yield seen["subject"], _part(seen)
        yield "evaluation", "equal" if seen["same_evaluation"] else "differs"
    if seen["seeds_varied"]:
        yield "seeds", f"by design these vary from trial to trial: {', '.join(seen['seeds_varied'])}"
    if found:
        thing = {"ops": "operations", "modules": "modules"}[found["level"]]
        count, places = len(found["findings"]), f"{found['operations']} compared in {found['trials']} trials"
        yield thing, f"{places}, {count or 'none'} to be named{':' if count else ''}"
        yield from (("note", note) for note in found["notes"])
        yield from (("left out", left_out(message)) for message in found["damaged"])
        if found["first_not_finite"]:
            yield "not finite", found["first_not_finite"]["words"]


def _part(seen: dict[str, Any]) -> str:
    if seen["weights_differ_after"] is None:
        return "equal"
    equal = f"equal after step {seen['weights_equal_after']}, " if seen["weights_equal_after"] is not None else ""
    return f"{equal}differ after step {seen['weights_differ_after']}"


def _tried(advice: dict[str, Any], config: dict[str, Any], command: Sequence[str]) -> Iterator[str]:
    yield f"       try: {one_line(advice['words'])} [{advice['source']}]"
    if advice["change"]:
        yield f"         {trying(command, config, advice['change'])}"


def _go_on(cell: dict[str, Any], command: Sequence[str]) -> Iterator[str]:
    """The command that looks deeper, where there is more to see than was seen."""
    found, seen, config = cell["why"], cell["reproducibility"], cell["config"]
    step = seen["first_diverging_step"]
    if not step or seen["first_data_step"] == step:  # start or data: no operation is to blame
        return
    compiled = config.get("train", {}).get("compile", "off") != "off"
    level = "modules" if compiled or step > MOST_STEPS else "ops"
    if found and (found["level"] in ("ops", level)) and (found["findings"] or step <= config["probe"]["steps"]):
        return
    yield f"  look deeper, into the first {'step' if step == 1 else f'{step} steps'}:"
    yield f"         {deeper(command, config, step, level)}"
