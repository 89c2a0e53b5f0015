"""One trial in its process, top to bottom: read trial.json, set flags, seed, build, train, evaluate, write record."""

import faulthandler
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.errors import Refusal
from runner.layout import logits_file, reached_file, record_file, series_file, trial_file
from runner.record import Outcome, Record, now
from runner.trial import Trial
from runner.worker import strict
from runner.worker.interpreter import IDENTITY
from runner.worker.seen import Seen

OWN = ("model", "dataset")  # where a user may name code
MOST_LINES = 6  # of what an error says: PyTorch lists backends on a hundred


def run(argument: str) -> int:
    """Do the trial in this folder. Returns the exit status: 0 if a complete or diverged training was recorded."""
    process = {"pid": os.getpid(), "interpreter": IDENTITY, "torch_preloaded": "torch" in sys.modules}
    faulthandler.enable()
    folder, started, seen = opened(Path(argument)), now(), Seen()
    trial = Trial.read(trial_file(folder))
    figures: dict[str, Any] = {}
    outcome: Outcome = "failed"
    reason, refused, series, logits = None, False, None, None
    try:
        from runner.worker.session import session  # torch comes with it: its failure must become a record too

        with strict.collecting(seen.not_deterministic):
            result = session(trial, seen, reached_file(folder))
        outcome, reason, figures, series = result.outcome, result.reason, result.figures, result.series
        logits = result.logits
    except BaseException as error:  # the process boundary: whatever went wrong becomes the record
        traceback.print_exc()
        # Kept to the end: to free what its frames hold aborts the process where the device itself has failed.
        sys.last_value = error
        # What a user's own code gives is looked at when the first step is done: so a refusal may come just behind it.
        refused = isinstance(error, Exception) and seen.steps <= (1 if isinstance(error, Refusal) else 0)
        reason = str(error) if isinstance(error, Refusal) else f"{_said(error)}{_where(seen)}"
        reason += _asks_for_cuda(reason, trial)
    if series:
        series.write(series_file(folder))
    if logits:
        logits.write(logits_file(folder))
    unwritten = _probe_unwritten(seen, folder)
    if unwritten:
        outcome, reason = "failed", reason or unwritten
    known = {"refused": refused, "flags": seen.flags, "environment": seen.environment, "process": process}
    known |= {"covariates": seen.covariates, "not_deterministic": seen.not_deterministic}
    Record.of(trial, outcome, reason, started, **known, **figures).write(record_file(folder))
    with suppress(OSError):
        reached_file(folder).unlink(missing_ok=True)
    return 0 if outcome in ("finished", "diverged") else 1


def _probe_unwritten(seen: Seen, folder: Path) -> str | None:
    """Leave what the probe saw, also of a training that failed. Returns why that was not possible, None if it was."""
    try:
        if seen.probe:
            seen.probe.write(folder)
    except Exception as error:  # whatever it is (a full disk, a device that is gone): the record must be written
        traceback.print_exc()
        return f"what the probe saw could not be written: {type(error).__name__}: {error}"
    return None


def _said(error: BaseException) -> str:
    """An error in words; one that ends programs says little, and nobody's Ctrl-C comes here: so its line too."""
    said = "\n".join(f"{type(error).__name__}: {error}".splitlines()[:MOST_LINES])  # the log has all of it
    if isinstance(error, Exception):
        return said
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{said.rstrip()} (raised in {frame.filename}, line {frame.lineno})"


def _where(seen: Seen) -> str:
    return "" if seen.steps or not seen.data else f" (before the first step was done, on {seen.data})"


def _asks_for_cuda(reason: str, trial: Trial) -> str:
    """What to say where the code that a user named wants the device that this trial does without."""
    own = [f"{group}._target_={trial.config[group]['_target_']}" for group in OWN if "_target_" in trial.config[group]]
    listed = "is only available for these backends" in reason  # by name, whatever was wanted
    wants = trial.device == "cpu" and own and not listed and ("CUDA" in reason or "NVIDIA" in reason)
    return f"; {' or '.join(own)} asks for CUDA, and this trial has device=cpu" if wants else ""


def opened(folder: Path) -> Path:
    """The folder itself under whatever name: a trial that was taken for dead must not write into its successor's."""
    link = Path(f"/proc/self/fd/{os.open(folder, os.O_RDONLY)}")
    return link if link.exists() else folder
