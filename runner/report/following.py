"""What comes next after a study, as commands to copy."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def following(summary: dict[str, Any], folder: Path, command: Any, uri: str | None, missing: bool) -> Iterator[str]:
    """A line for each thing that can be done next with the study in a folder, where its own command was given.

    `command` is what study.json holds, its words as a rule; `missing` says whether there are trials that going on would
    do; `uri` is where MLflow has the study.
    """
    if missing:
        yield f"to go on: {_again(command, folder)}"
    elif rounds := rounds_to_ask(summary):
        yield f"not all is decided, for more rounds: {_again(command, folder, rounds)}"
    yield f"to see it again: python -m runner.report {shlex.quote(str(folder))}"
    if uri:
        yield f"MLflow: {uri if uri.startswith('http') else f'mlflow ui --backend-store-uri {shlex.quote(uri)}'}"


def _again(command: Any, folder: Path, rounds: int | None = None) -> str:
    from runner.analysis.command import continuing  # with numpy, which no start of a study should pay

    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return continuing(command, str(folder), rounds)
    words = [f"trials={rounds}"] if rounds else []
    return f"the same command with {shlex.join([*words, f'study={folder}'])}"


def rounds_to_ask(summary: dict[str, Any]) -> int | None:
    """The next planned number of rounds where something is open that more rounds may settle; None otherwise."""
    answers = [found[question] for found in summary["recommendations"] for question in summary["recommendation"]]
    open_ = any(map(_open, summary["cells"])) or any(" more round" in one.get("undecided", "") for one in answers)
    return summary["looks"]["next"] if open_ else None


def _open(cell: dict[str, Any]) -> bool:
    """Whether a cell's ratio would be settled by more rounds, or its trials are too few to be called repeatable."""
    from runner.analysis.candidate import LEAST_TRIALS

    ratio, found = cell["speed"]["ratio_to_baseline"], cell["reproducibility"]
    if ratio["verdict"] == "inert":  # nothing is answered there, however many trials there are
        return False
    if ratio["verdict"] == "undecided" and ratio["rounds"] and ratio["rounds"][0] is not None:
        return not ratio["new_study"]
    return found["verdict"] in ("single", "bitwise") and not found["seeds_varied"] and found["trials"] < LEAST_TRIALS
