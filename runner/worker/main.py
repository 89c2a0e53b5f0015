"""One trial in its process, top to bottom: read trial.json, set flags, seed, build, train, evaluate, write record."""

import faulthandler
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.errors import Refusal
from runner.record import Outcome, Record
from runner.study import record_file, series_file, trial_file
from runner.trial import Trial
from runner.worker.interpreter import IDENTITY
from runner.worker.seen import Seen


def run(folder: str) -> int:
    """Do the trial in this folder. Returns the exit status: 0 if a complete or diverged training was recorded."""
    process = {"pid": os.getpid(), "interpreter": IDENTITY, "torch_preloaded": "torch" in sys.modules}
    faulthandler.enable()
    place, started, seen = Path(folder), _now(), Seen()
    trial = Trial.read(trial_file(place))
    figures: dict[str, Any] = {}
    outcome: Outcome = "failed"
    reason, refused = None, False
    try:
        from runner.worker.session import session  # torch comes with it: its failure must become a record too

        result = session(trial, seen)
        result.series.write(series_file(place))
        outcome, reason, figures = result.outcome, result.reason, result.figures
    except (Exception, SystemExit) as error:  # the process boundary: whatever went wrong becomes the record
        traceback.print_exc()
        refused = isinstance(error, Refusal) or _does_not_fit(error, seen.steps)
        reason = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        if refused and seen.data and not isinstance(error, Refusal):
            reason = f"the model does not fit {seen.data}: {reason}"
    Record(
        cell=trial.cell,
        number=trial.number,
        position=trial.position,
        outcome=outcome,
        reason=reason,
        refused=refused,
        started=started,
        ended=_now(),
        flags=seen.flags,
        environment=seen.environment,
        process={**process, "isolation": trial.config["isolation"]},
        seeds=trial.seeds,
        **figures,
    ).write(record_file(place))
    return 0 if outcome in ("finished", "diverged") else 1


def _does_not_fit(error: BaseException, steps: int) -> bool:
    """Whether model, data and settings do not go together: an error in or before the first step, not the device's.

    A failure of the device (out of memory, cuDNN finds no plan) may hit one mode alone: that is a result.
    """
    words = ("CUDA", "cuDNN", "CUBLAS", "cuBLAS", "out of memory", "allocate memory")
    of_device = isinstance(error, MemoryError) or any(word in f"{type(error).__name__}: {error}" for word in words)
    return steps == 0 and isinstance(error, Exception) and not of_device


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
