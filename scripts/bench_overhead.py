"""What the runner itself costs, beside what it measures.

a  steady step time inside the runner over a bare loop's, in fresh processes taken in turn, for each mode
b  wall time a trial beyond training and evaluation, beside a plain program's way to its first step
c  start: --help beside a bare Hydra app's, and the command line's way to its first trial
d  reports over 100, 1,000 and 10,000 synthetic trials: time and memory

From the repository: python scripts/bench_overhead.py --json [--part a,b,c,d] [--device auto] [--pairs 5] [WORD ...]
Words are the runner's own (train.steps=60) and change what is trained in a, b and c.
"""

import argparse
import json
import math
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from bench_start import RUNNER, bench_help, seconds
from fresh import ENVIRONMENT, answer, answered, device_here, four_cells, merged, trial
from synthetic_study import deep, wide

from runner import isolate
from runner.analysis.ratio import paired_ratio
from runner.cell import Cell
from runner.mode import mode_text
from runner.study import Study
from runner.trial import Trial

# Needed: what a CPU's steps may cost more, and a GPU's; how far the modes may lie apart there; a trial's time beyond
# training on a GPU; a report over 10,000 trials.
MOST_RATIO = {"cpu": 1.02, "cuda": 1.01}
MOST_APART, MOST_BEYOND_S, MOST_REPORT_S, MOST_REPORT_MB = 0.003, 1.0, 10.0, 500.0
WORDS = {
    "cpu": ["train.steps=60"],
    "cuda": ["dataset=synthetic", "dataset.size=32", "dataset.items=2048", "train.batch_size=256", "train.steps=40"],
}
# glibc hands large blocks back to the kernel or keeps them, by which sizes were freed before. Two programs that take
# the same steps then differ in page faults many times over, and on a CPU in step time: both are told to keep them.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
Figures = dict[str, Any]


def bench_steps(cells: list[Cell], pairs: int, device: str, folder: Path, seed: int) -> Figures:
    """The runner's step time over the bare loop's, by mode: 95 % interval over pairs of fresh processes.

    Both are children of one forkserver. In each round the modes come in random order, and within a mode the two.
    """
    study, dice = Study.ask(folder / "study", {"rounds": pairs}, cells), random.Random(seed)
    found: dict[str, list[Figures]] = {mode_text(cell.config["cudnn"]): [] for cell in cells}
    for number in range(pairs):
        for cell in dice.sample(cells, len(cells)):
            sides = [("runner", in_runner), ("bare", in_bare_loop)]
            both = {name: side(study, cell, number, device) for name, side in dice.sample(sides, 2)}
            found[mode_text(cell.config["cudnn"])].append(both)
        print(f"pair {number + 1} of {pairs}", file=sys.stderr, flush=True)
    modes = {mode: beside(measured) for mode, measured in found.items()}
    ratios = [one["ratio"] for one in modes.values()]
    return {"pairs": pairs, "modes": modes, "modes_apart": max(ratios) / min(ratios) - 1}


def in_runner(study: Study, cell: Cell, number: int, device: str) -> Figures:
    """The steady step time in ms of a trial, and the digest of its final weights."""
    record = trial(study, cell, number, device)
    assert record.speed and record.speed.step_ms and record.digests
    return {"step_ms": record.speed.step_ms, "weights": record.digests.final}


def in_bare_loop(study: Study, cell: Cell, number: int, device: str) -> Figures:
    """The same of the bare loop, in a child of the same forkserver."""
    ask = ask_of(cell, number, device)
    server = isolate.server(cell.config, os.getcwd())
    found = answer(server, "bare_loop:run", ask, study.folder.parent / "bare" / f"{cell.id}-{number}")
    return {"step_ms": median(found["step_ms"][1:]), "weights": found["weights"]}


def ask_of(cell: Cell, number: int, device: str) -> Figures:
    """What the bare loop is told: what a trial is told."""
    one = Trial.of(cell, number, 0, device)
    return {"config": one.config, "seeds": one.seeds, "device": device}


def beside(measured: Sequence[Figures]) -> Figures:
    """The ratio of one mode from its pairs, and in how many pairs both ended with the same weights, bit by bit."""
    logs = [math.log(one["runner"]["step_ms"] / one["bare"]["step_ms"]) for one in measured]
    ratio = paired_ratio(logs, 0.95, margin=0.01)
    return {
        "ratio": ratio.value,
        "ci95": ratio.ci95,
        "pairs": [[one[side]["step_ms"] for side in ("runner", "bare")] for one in measured],
        "same_weights": sum(one["runner"]["weights"] == one["bare"]["weights"] for one in measured),
    }


def bench_trials(words: Sequence[str], rounds: int, plain: int, cell: Cell, device: str, folder: Path) -> Figures:
    """Wall time a trial beyond training and evaluation, in a study; and a plain program's way to its first step."""
    study, launched = Study(folder / "studied"), time.time()
    command = [*RUNNER, "-m", "cudnn=glob(*)", f"trials={rounds}", f"study={study.folder}", "tracking=off"]
    seconds([*command, f"device={device}", *words], str(folder))
    records = sorted(study.records(), key=lambda record: record.started)
    began = [datetime.fromisoformat(record.started).timestamp() for record in records]
    trained = [speed.train_s + speed.evaluate_s for record in records if (speed := record.speed)]
    beyond = [later - earlier - own for (earlier, later), own in zip(pairwise(began), trained, strict=False)]
    builds = [record.speed.build_s for record in records if record.speed]
    return {
        "trials": len(beyond),
        "beyond_training_s": median(beyond),
        "of_it_build_s": median(builds),
        "to_first_trial_s": began[0] - launched,
        "plain_to_first_step_s": [to_first_step(cell, number, device, folder) for number in range(plain)],
    }


def to_first_step(cell: Cell, number: int, device: str, folder: Path) -> float:
    """What the bare loop as a program of its own takes to its first step, in s."""
    place = folder / f"plain-{number}"
    place.mkdir()
    (place / "ask.json").write_text(json.dumps(ask_of(cell, number, device)))
    seconds([sys.executable, str(Path(__file__).with_name("bare_loop.py")), str(place)], os.getcwd())
    return float(answered(place, "the bare loop")["to_first_step_s"])


def bench_reports(counts: Sequence[int], folder: Path) -> Figures:
    """Time and peak memory of `python -m runner.report` over synthetic studies of two shapes."""
    shapes: dict[str, Callable[[Path, int], Study]] = {"four_cells": deep, "trials_over_20_cells": wide}
    return {
        name: [report(make, count, folder / f"{name}-{count}") for count in counts] for name, make in shapes.items()
    }


def report(make: Callable[[Path, int], Study], trials: int, folder: Path) -> Figures:
    """One report, in a process of its own: wall and processor time in s, peak resident memory in MB."""
    command = [sys.executable, "-m", "runner.report", str(make(folder, trials).folder)]
    began = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)])
        _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the report over {trials} trials failed")
    wall_s, cpu_s = time.perf_counter() - began, used.ru_utime + used.ru_stime
    return {"trials": trials, "report_s": wall_s, "cpu_s": cpu_s, "peak_mb": used.ru_maxrss / 1024}


def growth(reports: Sequence[Figures], figure: str) -> float:
    """How much faster a figure grows between the last two counts than the number of trials: 1 is as fast."""
    before, last = reports[-2:]
    return float(last[figure] / before[figure] / (last["trials"] / before["trials"]))


def verdicts(found: Figures) -> dict[str, bool]:
    """Whether what is needed was measured, by its name; only of what was measured."""
    good: dict[str, bool] = {}
    kind = str(found["device"]).partition(":")[0]
    if steps := found.get("steps"):
        good["step_ratio"] = all(mode["ratio"] <= MOST_RATIO[kind] for mode in steps["modes"].values())
        if kind == "cuda":
            good["modes_equal"] = steps["modes_apart"] <= MOST_APART
    if (trials := found.get("trial")) and kind == "cuda":
        good["beyond_training"] = trials["beyond_training_s"] <= MOST_BEYOND_S
    for shape, reports in found.get("report", {}).items():
        largest = reports[-1]
        good[f"{shape}_report"] = largest["report_s"] <= MOST_REPORT_S and largest["peak_mb"] <= MOST_REPORT_MB
        if len(reports) > 1:
            good[f"{shape}_growth"] = max(growth(reports, figure) for figure in ("report_s", "peak_mb")) <= 1
    return good


def measure(asked: argparse.Namespace, folder: Path) -> Figures:
    """The parts that were asked for."""
    parts = asked.part.split(",")
    place = {"cores": os.cpu_count(), "python": platform.python_version()}
    found: Figures = {"device": asked.device, "environment": place}
    if {"a", "b", "c"} & set(parts):
        device = found["device"] = device_here(asked.device)
        words = merged(WORDS[device.partition(":")[0]], asked.words)
        cells = four_cells(words, device)
        found["environment"], found["words"] = place | environment_of(cells[0], device, folder), words
    if "a" in parts:
        with patch.dict(os.environ, KEEP_MEMORY):  # another environment is another forkserver
            found["steps"] = bench_steps(cells, asked.pairs, device, folder, asked.seed)
    if "b" in parts:
        found["trial"] = bench_trials(words, asked.rounds, asked.plain, cells[0], device, folder)
    if "c" in parts:
        found["start"] = bench_help(asked.repeats, str(folder))
    if "d" in parts:
        found["report"] = bench_reports([int(count) for count in asked.records.split(",")], folder)
    return found | {"good": verdicts(found)}


def environment_of(cell: Cell, device: str, folder: Path) -> Figures:
    """Where this is measured, from a first trial, which also has the disk's files read before anything is timed."""
    record = trial(Study.ask(folder / "first", {"rounds": 1}, [cell]), cell, 0, device)
    return {name: record.environment.get(name) for name in ENVIRONMENT}


def main() -> int:
    """Measure and print; 1 if something was not as good as is needed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="a,b,c,d", help="which parts, separated by commas")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N")
    parser.add_argument("--pairs", type=int, default=5, help="a: pairs of processes a mode")
    parser.add_argument("--seed", type=int, default=0, help="a: of the order")
    parser.add_argument("--rounds", type=int, default=2, help="b: rounds of the study")
    parser.add_argument("--plain", type=int, default=2, help="b: starts of the plain program")
    parser.add_argument("--repeats", type=int, default=5, help="c: calls of --help")
    parser.add_argument("--records", default="100,1000,10000", help="d: numbers of trials")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("words", nargs="*", help="the runner's own words")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(asked, Path(folder))
    print(json.dumps(found, indent=1) if asked.json else lines(found))
    return 0 if all(found["good"].values()) else 1


def lines(found: Figures) -> str:
    """The figures for people, one a line."""
    rows = [
        f"{mode}: {one['ratio']:.4f} of the bare loop's step"
        for mode, one in found.get("steps", {"modes": {}})["modes"].items()
    ]
    rows += [f"{name}: {value}" for part in ("trial", "start") for name, value in found.get(part, {}).items()]
    rows += [f"{shape}: {one}" for shape, reports in found.get("report", {}).items() for one in reports]
    return "\n".join([*rows, *(f"{name}: {'good' if good else 'NOT GOOD'}" for name, good in found["good"].items())])


if __name__ == "__main__":
    sys.exit(main())
