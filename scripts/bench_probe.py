"""What the probes cost: steps and memory beside a plain training's, and the comparison of two long traces.

steps    the steady step time of a ResNet with each probe over that without, in fresh processes taken in turn, every
         step traced; and the same for the peak memory that the allocator gave out
compare  two equal traces of 100,000 operations written, read and compared, in s

From the repository: python scripts/bench_probe.py --json [--part steps,compare] [--device auto] [--pairs 3] [WORD ...]
Words are the runner's own (precision=bf16, model.depth=18) and change what is trained.
"""

import argparse
import json
import math
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fresh import ENVIRONMENT, device_here, four_cells, merged, trial

from runner.analysis.ratio import paired_ratio
from runner.analysis.traces import compare
from runner.cell import Cell
from runner.operation import Operation, Value
from runner.record import Record
from runner.study import Study
from runner.trace import Trace

# Needed on a GPU: step times over a plain one's, and peak memory; anywhere: reading and comparing two traces.
MOST_RATIO = {"modules": 1.5, "ops": 20.0}
MOST_MEMORY, MOST_COMPARE_S = 1.3, 10.0
STEPS = 12
PROBES = {
    "plain": ["probe=none"],
    "modules": ["probe=modules", f"probe.steps={STEPS}"],
    "ops": ["probe=ops", f"probe.steps={STEPS}"],
    "ops_repeat": ["probe=ops", f"probe.steps={STEPS}", "probe.repeat=true"],
}
WORDS = {
    "cpu": ["model=resnet", "model.depth=10", "train.batch_size=8", "threads=1", "precision=fp32"],
    "cuda": [
        *("model=resnet", "model.depth=50", "model.cifar_stem=false", "precision=fp32", "train.batch_size=64"),
        *("dataset=synthetic", "dataset.size=224", "dataset.items=768", "dataset.test_items=64"),
    ],
}
Figures = dict[str, Any]


def bench_steps(cells: dict[str, Cell], pairs: int, device: str, folder: Path, seed: int) -> Figures:
    """Step time and peak memory with each probe over those without, by probe; in each round in random order."""
    study, dice = Study.ask(folder / "study", {"rounds": pairs}, list(cells.values())), random.Random(seed)
    found: list[dict[str, Record]] = []
    for number in range(pairs):
        order = dice.sample(list(cells), len(cells))
        found.append({probe: trial(study, cells[probe], number, device) for probe in order})
        print(f"round {number + 1} of {pairs}", file=sys.stderr, flush=True)
    weights = {one.digests.final for records in found for one in records.values() if one.digests}
    probes = {probe: beside(found, probe) for probe in cells if probe != "plain"}
    plain = [step_ms(records["plain"]) for records in found]
    environment = {name: found[0]["plain"].environment.get(name) for name in ENVIRONMENT}
    return {"plain_step_ms": plain, "probes": probes, "distinct_weights": len(weights), "environment": environment}


def beside(found: list[dict[str, Record]], probe: str) -> Figures:
    """One probe's step time and memory over those of the plain training of the same round."""
    logs = [math.log(step_ms(one[probe]) / step_ms(one["plain"])) for one in found]
    memory = [both for one in found if (both := memory_ratio(one[probe], one["plain"]))]
    figures: Figures = {"step_ratio": math.exp(sum(logs) / len(logs)), "step_ratios": [math.exp(one) for one in logs]}
    if len(logs) > 1:
        figures["ci95"] = paired_ratio(logs, 0.95, margin=0.01).ci95
    return figures | {"memory_ratio": median(memory) if memory else None}


def step_ms(record: Record) -> float:
    """The steady step of a trial; `trial` has seen that there is one."""
    assert record.speed is not None and record.speed.step_ms is not None
    return record.speed.step_ms


def memory_ratio(record: Record, plain: Record) -> float | None:
    """The ratio of what the device's allocator had given out at most; None on a CPU, where nobody counts it."""
    one, other = (taken.memory.get("peak_allocated_bytes") for taken in (record, plain))
    return one / other if one and other else None


def bench_compare(operations: int, folder: Path) -> Figures:
    """The time for two equal traces, with a difference in the last operation: to write both, to read, to compare."""
    one = synthetic(operations, 0)
    last = one.operations[-1]
    changed = replace(last, outputs=(replace(last.outputs[0], digest="f" * 32),))
    other = replace(one, number=1, operations=(*one.operations[:-1], changed))
    paths = [folder / f"{number}.jsonl.gz" for number in range(2)]
    began = time.perf_counter()
    for trace, path in zip((one, other), paths, strict=True):
        trace.write(path)
    wrote = time.perf_counter()
    traces = [Trace.read(path) for path in paths]
    read = time.perf_counter()
    compared = compare(traces)
    done = time.perf_counter()
    assert [finding.index for finding in compared.findings] == [operations - 1], "the planted difference was not found"
    sizes = {"operations": operations, "file_bytes": paths[0].stat().st_size}
    return sizes | {"write_s": wrote - began, "read_s": read - wrote, "compare_s": done - read}


def synthetic(operations: int, number: int) -> Trace:
    """A trace of operations that read what three earlier ones gave."""
    made = []
    for index in range(operations):
        sources = [source for source in (index - 1, index - 2, index - 7) if source >= 0]
        inputs = tuple(Value(f"{source:032x}", (64, 256, 14, 14), "float32", source) for source in sources)
        outputs = (Value(f"{index:032x}", (64, 256, 14, 14), "float32"),)
        name, module = f"aten.operation_{index % 40}.default", f"layer{index % 160}.conv"
        step, line = 1 + index // 3000, f"net.py:{index % 97}"
        made.append(Operation(index, step, "forward", "computed", name, module, line, "[1, 1], False", inputs, outputs))
    return Trace("ops", "synthetic", number, 1 + operations // 3000, tuple(made))


def verdicts(found: Figures) -> dict[str, bool]:
    """Whether what is needed was measured, by its name; only of what was measured."""
    good: dict[str, bool] = {}
    if steps := found.get("steps"):
        good["same_weights"] = steps["distinct_weights"] == 1 or found["device"] != "cpu"
        if found["device"].startswith("cuda"):
            for probe, most in MOST_RATIO.items():
                good[f"{probe}_step"] = steps["probes"][probe]["step_ratio"] <= most
            taken = [one["memory_ratio"] for one in steps["probes"].values()]
            good["memory"] = all(ratio is not None and ratio <= MOST_MEMORY for ratio in taken)
    if compared := found.get("compare"):
        good["compare"] = compared["read_s"] + compared["compare_s"] <= MOST_COMPARE_S
    return good


def measure(asked: argparse.Namespace, folder: Path) -> Figures:
    """The parts that were asked for."""
    parts = asked.part.split(",")
    found: Figures = {"device": asked.device}
    if "steps" in parts:
        device = found["device"] = device_here(asked.device)
        words = found["words"] = merged([*WORDS[device.partition(":")[0]], f"train.steps={STEPS}"], asked.words)
        cells = {probe: four_cells([*words, *more], device)[0] for probe, more in PROBES.items()}
        found["steps"] = bench_steps(cells, asked.pairs, device, folder, asked.seed)
    if "compare" in parts:
        found["compare"] = bench_compare(asked.operations, folder)
    return found | {"good": verdicts(found)}


def lines(found: Figures) -> str:
    """The figures for people, one a line."""
    rows = []
    if steps := found.get("steps"):
        rows.append(f"a plain step: {median(steps['plain_step_ms']):.2f} ms on {found['device']}")
        rows += [
            f"probe {name}: {one['step_ratio']:.2f} of a plain step"
            + (f", {one['memory_ratio']:.2f} of its memory" if one["memory_ratio"] else "")
            for name, one in steps["probes"].items()
        ]
        rows.append(f"distinct final weights over all trials: {steps['distinct_weights']}")
    rows += [f"{name}: {value:.4g}" for name, value in found.get("compare", {}).items()]
    return "\n".join([*rows, *(f"{name}: {'good' if good else 'NOT GOOD'}" for name, good in found["good"].items())])


def main() -> int:
    """Measure and print; 1 if something was not as good as is needed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="steps,compare", help="which parts, separated by commas")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N")
    parser.add_argument(
        "--pairs", type=int, default=3, help="rounds: each takes a trial without and one with each probe"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--operations", type=int, default=100_000, help="of each trace that is compared")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("words", nargs="*", help="the runner's own words")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(asked, Path(folder))
    print(json.dumps(found, indent=1) if asked.json else lines(found))
    return 0 if all(found["good"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
