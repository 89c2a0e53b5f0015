"""A trial of an attached script (phase=attach): the command as it is, watched from within by runner/hook.

This process only starts the command, waits for it and turns what the hook left into a record. It never imports torch.
"""

import hashlib
import json
import math
import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from runner.layout import attached_folder, log_file, record_file, series_file, trial_file
from runner.log import end_of
from runner.process_end import ended_words
from runner.record import Digests, Outcome, Record, now
from runner.schema_attach import KEPT
from runner.series import Series
from runner.trial import Trial
from runner.worker.host import driver, host
from runner.worker.main import opened
from runner.worker.step_times import StepTimes
from runner.worker.strict import operation_of

HOOK = Path(__file__).resolve().parents[1] / "hook"
LOOK_S = 0.1
PATIENCE_S = 60.0  # for a script whose steps are done to close its files, loggers and workers
NOTHING = hashlib.sha256().hexdigest()[:32]  # what is not looked at, as an evaluation, is the same in every trial
# The variables that the hook watches, as the command gets them: a change before Python begins is told as well.
WATCHED = (
    *("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES"),
    *("NVIDIA_TF32_OVERRIDE", "PYTHONHASHSEED", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)


@dataclass(frozen=True)
class Left:
    """What a command left: its exit status, or why it did not begin, and what the hook saw, if it saw a step."""

    status: int | None
    found: dict[str, Any] | None
    claimed: bool
    error: str = ""


def run(argument: str) -> int:
    """Do the trial in this folder. Returns the exit status: 0 if a complete or diverged training was recorded."""
    folder, started = opened(Path(argument)), now()
    trial = Trial.read(trial_file(folder))
    work = attached_folder(folder)
    work.mkdir(exist_ok=True)
    left = _ran(trial, work)
    outcome, reason = _outcome(left, trial, log_file(folder))
    known: dict[str, Any] = {"refused": outcome == "failed" and not left.claimed, "process": {"status": left.status}}
    known |= {"not_deterministic": _not_deterministic(log_file(folder)), "environment": _environment(trial, left)}
    if left.found:
        known["flags"], known["doctor"] = left.found["flags"], _doctor(left.found, trial)
        known["process"] |= {name: left.found[name] for name in ("pid", "interpreter")}
    if left.found and outcome in ("finished", "diverged"):
        known |= _figures(left.found)
        _series(left.found).write(series_file(folder))
    Record.of(trial, outcome, reason, started, **known).write(record_file(folder))
    shutil.rmtree(work, ignore_errors=True)
    return 0 if outcome in ("finished", "diverged") else 1


def _ran(trial: Trial, work: Path) -> Left:
    command = trial.config["attach"]["command"]
    try:
        process = subprocess.Popen(command, env=_environ(trial, work.resolve()))
    except OSError as error:
        return Left(None, None, False, f"{command[0]}: {error.strerror}")
    _wait(process, work / "result.json")
    found = None
    with suppress(OSError):
        found = json.loads((work / "result.json").read_text())
    return Left(process.returncode, found, (work / "claimed").exists())


def _environ(trial: Trial, work: Path) -> dict[str, str]:
    """The command's variables: those of this process, the hook before the user's own import path, and the device."""
    variables = dict(os.environ)
    variables.pop("PYTHONSAFEPATH", None)  # ours, where the runner was started by its console script
    variables |= json.loads(variables.pop(KEPT, "{}")) | _visible(trial.device)
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOOK), variables.get("PYTHONPATH")]))
    config = trial.config
    variables["CUDNN_ATTACHED"] = json.dumps(
        {
            "folder": str(work),
            "home": os.getcwd(),
            "steps": config["train"]["steps"],
            "hold": config["attach"]["hold"],
            "config": {name: config[name] for name in ("cudnn", "determinism", "precision")},
            "variables": {name: variables.get(name) for name in WATCHED},
        }
    )
    return variables


def _visible(device: str) -> dict[str, str]:
    """Have the script see the trial's device alone; "cuda" leaves all of them to it, "cpu" none."""
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    if not index:
        return {}
    there = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return {"CUDA_VISIBLE_DEVICES": there[int(index)] if int(index) < len(there) else index}


def _wait(process: "subprocess.Popen[bytes]", result: Path) -> None:
    """Wait for the command's end; once its steps are done it has some time to come to it."""
    done_s = None
    while process.poll() is None:
        if done_s is None and result.exists():
            done_s = time.monotonic()
        if done_s is not None and time.monotonic() - done_s > PATIENCE_S:
            print(f"the steps are done, and the command goes on: ended after {PATIENCE_S:g} s", flush=True)
            _kill(process)
        time.sleep(LOOK_S)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(psutil.NoSuchProcess):
        for one in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def _outcome(left: Left, trial: Trial, log: Path) -> tuple[Outcome, str | None]:
    """How the trial went, and why not better. A script that was stopped after its steps has done all it had to."""
    found = left.found
    if left.error:
        return "failed", left.error
    steps = len(found["step_ms"]) if found else 0
    if found and steps and (found["stopped"] or left.status == 0):
        return _finite(found)
    when = f"after {steps} of {trial.config['train']['steps']} steps" if steps else "before its first optimizer step"
    if left.claimed and not steps:
        when = "after its first optimizer step, and nothing of it is left: the process was killed, or replaced by exec"
    elif left.status == 0:
        return "failed", "the command ended well, but no optimizer step was seen: see docs/attach.md for what is seen"
    said = end_of(log).splitlines()
    last = f": {said[-1].strip()}" if said else ""
    return "failed", f"the command ended {ended_words(left.status or 0)} {when}{last}"


def _finite(found: dict[str, Any]) -> tuple[Outcome, str | None]:
    """Diverged from the first loss that was seen and is no finite number."""
    for step, loss in enumerate(found["loss"], start=1):
        if not math.isfinite(loss) and step not in found["unseen"]:
            return "diverged", f"the loss is {loss} at step {step}"
    return "finished", None


def _environment(trial: Trial, left: Left) -> dict[str, Any]:
    seen = left.found["environment"] if left.found else {}
    cuda = {"driver": driver(), "exclusive": trial.exclusive} if seen.get("device") == "cuda" else {}
    flags = left.found["flags"]["before"] if left.found else {}
    kinds = ("conv", "rnn", "matmul") if flags else ()
    precisions = {f"{kind}_precision": "tf32" if flags[f"{kind}_tf32"] else "ieee" for kind in kinds}
    return {**host(), **seen, **cuda, **precisions}


def _doctor(found: dict[str, Any], trial: Trial) -> list[str]:
    """What the hook found, and what its figures mean for the reader."""
    steps, asked = len(found["step_ms"]), trial.config["train"]["steps"]
    notes = list(found["findings"])
    if steps < asked:
        notes.append(f"the script ends after {steps} optimizer steps; {asked} were to be watched")
    if found["skipped"]:
        notes.append("GradScaler skips some steps: they are counted and change nothing")
    if found["optimizers"] > 1:
        notes.append(f"{found['optimizers']} optimizers step: a step here is one round of all of them")
    if len(found["unseen"]) == steps:
        notes.append("no backward() of a single number was seen, so no losses are compared")
    return notes


def _not_deterministic(log: Path) -> list[str]:
    """What PyTorch called not deterministic, by the end of the log: warnings in another process are seen there only."""
    names = [operation_of(line) for line in end_of(log, 20_000).splitlines() if "determini" in line.lower()]
    return list(dict.fromkeys(name for name in names if name))


def _figures(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record that a complete training fills."""
    measured = {name: found[name] for name in ("build_s", "train_s")}
    # How many samples a step has only the script knows.
    unknown = {"samples_per_s": None, "evaluate_samples_per_s": None, "evaluate_s": 0.0}
    digests = Digests(**found["digests"], metrics=NOTHING, predictions=NOTHING)
    speed = _times(found).speed(1, **measured, **unknown)
    return {"digests": digests, "speed": speed, **{name: found[name] for name in ("memory", "gradients")}}


def _times(found: dict[str, Any]) -> StepTimes:
    step_ms, enqueue_ms, wait_ms = (
        np.array(found[name], dtype=np.float64) for name in ("step_ms", "enqueue_ms", "wait_ms")
    )
    lag_ms = None if found["lag_ms"] is None else np.array(found["lag_ms"], dtype=np.float64)
    return StepTimes(step_ms, enqueue_ms, wait_ms, np.array(found["shape"], dtype=np.int64), lag_ms)


def _series(found: dict[str, Any]) -> Series:
    loss, sketch = (np.array(found[name], dtype=np.float32) for name in ("loss", "sketch"))
    return _times(found).series(loss, np.array(found["data"], dtype=np.int64).reshape(-1, 2), sketch)
