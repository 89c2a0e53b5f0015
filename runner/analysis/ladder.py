"""The ladder: how far down the trials of a cell are equal, from the start to the operation that parts them."""

from runner.analysis.divergence import Divergence
from runner.analysis.finding import Finding, where
from runner.analysis.traces import Compared

NAMED = {"ops": "operation", "modules": "module"}
LEADS = {
    "operation": "the first {thing} that differs",
    "random": "the first random numbers that differ",
    "scalar": "the first argument that differs",
    "outside": "the first tensor that differs",
    "uninitialised": "the first memory that differs",
    "path": "the trials part",
}


def sentence(divergence: Divergence, compared: Compared | None) -> str:
    """What is equal and where trials part, down to the first thing found in their traces, if there are any."""
    deeper = deepest(divergence, compared) if compared else None
    return f"{divergence.sentence}; {deeper}" if deeper else divergence.sentence


def deepest(divergence: Divergence, compared: Compared) -> str | None:
    """The lowest rung alone; None where no trial differs."""
    thing = NAMED[compared.level]
    if compared.findings:
        return _first_words(compared.findings, thing)
    if divergence.verdict in ("bitwise", "single", None) or compared.trials < 2:
        return None
    if divergence.first_data_step:
        return f"no {thing} differs before the data do"
    return f"no {thing} differs on equal inputs among the {compared.operations} traced"


def _first_words(findings: list[Finding], thing: str) -> str:
    """The first finding that parts trials, in a line: what differs, where, and whether it does so when repeated."""
    found = next((one for one in findings if one.distinct > 1), findings[0])
    if found.rung == "path":
        return found.words
    lead = LEADS[found.rung].format(thing=thing) if found.distinct > 1 else f"{thing} that does not repeat"
    repeats = f", {found.repeats}" if found.repeats else ""
    return f"{lead}: {where(found)}{repeats}"
