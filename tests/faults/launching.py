"""The command line as users start it, several at once: what the tests of faults share. Needs no pytest."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runner.layout import record_file, trial_file
from runner.study import Study

TESTS = Path(__file__).resolve().parents[1]
DATA = ["model=custom", "dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image"]
TINY = [*DATA, "dataset.classes=10", "train.steps=10", "train.batch_size=8", "threads=1", "tracking=off"]
PLAIN = [*TINY, "model._target_=planted.Plain"]
SLOW = [*TINY, "model._target_=planted_share.Slow"]

Started = subprocess.Popen[str]
Before = Callable[[], None] | None


def start(*words: str, folder: Path, paths: tuple[Path, ...] = (), before: Before = None, **variables: str) -> Started:
    """Begin `python -m runner -m ...` in a folder, after `before` in its process; its output comes from `ended`."""
    found = [*map(str, paths), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(found), "HYDRA_FULL_ERROR": "0", **variables}
    command = [sys.executable, "-m", "runner", "-m", *words]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, env=environ, text=True, preexec_fn=before, **output)  # type: ignore[call-overload,no-any-return]


def ended(process: Started, timeout: float = 900) -> tuple[int, str]:
    """The exit code and everything that was said."""
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


def done(*words: str, folder: Path, **more: object) -> tuple[int, str]:
    """Exit code and output of one command."""
    return ended(start(*words, folder=folder, **more))  # type: ignore[arg-type]


def finals(study: Study) -> dict[tuple[str, int], str]:
    """The digest of the final weights of each finished trial, by cell and round."""
    return {(one.cell, one.number): one.digests.final for one in study.records() if one.digests}


def pids(study: Study) -> dict[tuple[str, int], object]:
    """In which process each finished trial was done."""
    return {(one.cell, one.number): one.process["pid"] for one in study.records() if one.complete}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that is not hidden, by its path."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def trials(study: Study) -> list[Path]:
    """The folders of all trials, also of attempts that were set aside."""
    return sorted((study.folder / "cells").glob("*/trial-*"))


def set_aside(study: Study) -> list[Path]:
    """The folders of attempts that count no more."""
    return [path for path in trials(study) if "." in path.name]


def at_work(folder: Path) -> list[Path]:
    """The folders of trials that have begun and have no record."""
    begun = (path.parent for path in folder.glob("cells/*/trial-*/trial.json"))
    return [path for path in begun if "." not in path.name and not record_file(path).exists()]


def rounds_by_invocation(study: Study) -> dict[str, list[tuple[int, str]]]:
    """What each invocation began, from Hydra's own files: round and mode, by the invocation's folder."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in (study.folder / "hydra").glob("*/*/config/overrides.yaml"):
        words = dict(line.removeprefix("- ").partition("=")[::2] for line in path.read_text().splitlines())
        found.setdefault(path.parents[2].name, []).append((int(words["trial.number"]), words.get("cudnn", "")))
    return found


def readable(study: Study) -> bool:
    """Whether every file that tells something is whole."""
    return not study.found().damaged and all(trial_file(path).is_file() for path in trials(study))
