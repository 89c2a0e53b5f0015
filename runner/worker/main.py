"""One trial in its process, top to bottom: read trial.json, set flags, seed, build, train, evaluate, write record."""

import faulthandler
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from runner.errors import Refusal
from runner.record import Outcome, Record, now
from runner.study import record_file, series_file, trial_file
from runner.trial import Trial
from runner.worker.interpreter import IDENTITY
from runner.worker.seen import Seen


def run(argument: str) -> int:
    """Do the trial in this folder. Returns the exit status: 0 if a complete or diverged training was recorded."""
    process = {"pid": os.getpid(), "interpreter": IDENTITY, "torch_preloaded": "torch" in sys.modules}
    faulthandler.enable()
    folder, started, seen = Path(argument), now(), Seen()
    trial = Trial.read(trial_file(folder))
    figures: dict[str, Any] = {}
    outcome: Outcome = "failed"
    reason, refused = None, False
    try:
        from runner.worker.session import session  # torch comes with it: its failure must become a record too

        result = session(trial, seen)
        result.series.write(series_file(folder))
        outcome, reason, figures = result.outcome, result.reason, result.figures
    except (Exception, SystemExit) as error:  # the process boundary: whatever went wrong becomes the record
        traceback.print_exc()
        refused = isinstance(error, Refusal) or _does_not_fit(error, seen.steps)
        reason = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        if refused and seen.data and not isinstance(error, Refusal):
            reason = f"the model does not fit {seen.data}: {reason}"
    known = {"refused": refused, "flags": seen.flags, "environment": seen.environment, "process": process}
    Record.of(trial, outcome, reason, started, **known, **figures).write(record_file(folder))
    return 0 if outcome in ("finished", "diverged") else 1


def _does_not_fit(error: BaseException, steps: int) -> bool:
    """Whether model, data and settings do not go together: an error in or before the first step.

    Not a failure of the device (out of memory, cuDNN finds no plan), of the machine, or of an operation that strict
    mode forbids: these may hit one cell alone, and are results.
    """
    device = ("CUDA", "cuDNN", "CUBLAS", "cuBLAS", "out of memory", "allocate memory", "unable to find an engine")
    words = (*device, "deterministic", "DataLoader")
    elsewhere = isinstance(error, MemoryError | OSError) or any(word in f"{error!r}" for word in words)
    return steps == 0 and isinstance(error, Exception) and not elsewhere
