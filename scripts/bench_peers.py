"""The runner beside what people use instead: speed of the same training, and what each says of the four modes.

Images per second of the same ResNet on the same images: by a bare loop over images on the device, by Lightning's
Trainer with a DataLoader of 0 and of 8 workers, by the runner. And what torch.utils.benchmark and Lightning's flags
conclude about the four modes in one process, beside what the runner finds in fresh ones.
Needs the extra `peers`. From the repository: python scripts/bench_peers.py --json [--device auto] [WORD ...]
"""

import argparse
import importlib.util
import json
import math
import os
import random
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from typing import Any

from fresh import ENVIRONMENT, answer, device_here, four_cells, merged, trial

from runner import isolate
from runner.analysis.ratio import paired_ratio
from runner.cell import Cell
from runner.child import ForkServer, fork_server
from runner.mode import mode_name
from runner.record import Record, Speed
from runner.study import Study
from runner.trial import Trial

SGD = ["train.optimizer=sgd", "train.learning_rate=0.01", "dataset=synthetic", "dataset.size=32"]
WORDS = {
    "cpu": [*SGD, "model.depth=10", "dataset.items=320", "train.batch_size=16", "train.steps=20"],
    "cuda": [*SGD, "model.depth=18", "precision=bf16", "dataset.items=40960", "train.batch_size=512", "train.steps=80"],
}
Figures = dict[str, Any]


def bench(words: list[str], device: str, asked: argparse.Namespace, folder: Path) -> Figures:
    """Everything, each measurement in a fresh child of a forkserver."""
    cells = four_cells(words, device)
    default, size = cells[0], cells[0].config["train"]["batch_size"]
    server = fork_server(tuple(sorted(isolate.environ(default.config).items())), ("peers",), os.getcwd())
    records = studied(Study.ask(folder / "study", {"rounds": asked.rounds}, cells), cells, asked.rounds, device)
    ask = ask_of(default, device, asked.skip)
    workers = ask | {"workers": asked.workers}
    peers = {
        "bare loop": ("peers:bare_loop", ask),
        "Lightning, 0 workers": ("peers:lightning_loader", ask),
        f"Lightning, {asked.workers} workers": ("peers:lightning_loader", workers),
    }
    rates = {
        name: median(rate(server, *peer, folder / f"{name}-{number}") for number in range(asked.repeats))
        for name, peer in peers.items()
    }
    speeds = {mode: [one.speed for one in own if one.speed] for mode, own in records.items()}
    return {
        "device": device,
        "environment": {name: records["default"][0].environment.get(name) for name in ENVIRONMENT},
        "words": words,
        "rounds": asked.rounds,
        "images_per_s": rates | {"runner": median(images_per_s(speed, size) for speed in speeds["default"])},
        "modes": {
            "torch.utils.benchmark, one process": answer(server, "peers:timer", ask, folder / "timer"),
            "Lightning's flags, one process": answer(server, "peers:lightning_flags", workers, folder / "flags"),
            "runner, fresh processes": {mode: mean(step_times(own)) for mode, own in speeds.items()},
        },
        "runner": {mode: beside(step_times(own), step_times(speeds["default"])) for mode, own in speeds.items()},
    }


def studied(study: Study, cells: list[Cell], rounds: int, device: str) -> dict[str, list[Record]]:
    """The records of the runner's trials by mode, from rounds in random order."""
    dice = random.Random(0)
    found: dict[str, list[Record]] = {mode_name(cell.config["cudnn"]): [] for cell in cells}
    for number in range(rounds):
        for cell in dice.sample(cells, len(cells)):
            found[mode_name(cell.config["cudnn"])].append(trial(study, cell, number, device))
    return found


def ask_of(cell: Cell, device: str, skip: int) -> Figures:
    """What a peer is told: what a trial is told, and how it is timed."""
    one = Trial.of(cell, 0, 0, device)
    return {"config": one.config, "seeds": one.seeds, "device": device, "skip": skip, "workers": 0}


def rate(server: ForkServer, function: str, ask: Figures, folder: Path) -> float:
    """A peer's images per second."""
    return float(answer(server, function, ask, folder)["images_per_s"])


def images_per_s(speed: Speed, batch_size: int) -> float:
    """The runner's, over the whole loop after the first step: waiting, digests and all included."""
    return (speed.steps - 1) * batch_size / (speed.train_s - speed.first_step_ms / 1000)


def step_times(speeds: list[Speed]) -> list[float]:
    """The steady step times in ms."""
    return [speed.step_ms for speed in speeds if speed.step_ms]


def beside(own: list[float], default: list[float]) -> Figures:
    """What the runner says: the ratio paired by round, its interval simultaneous over three comparisons."""
    logs = [math.log(one / other) for one, other in zip(own, default, strict=True)]
    ratio = paired_ratio(logs, 1 - 0.05 / 3, margin=0.02)
    return {"ratio": ratio.value, "ci95": ratio.ci95, "verdict": ratio.verdict}


def lines(found: Figures) -> str:
    """The figures for people."""
    rows = [f"{name}: {value:,.0f} images/s" for name, value in found["images_per_s"].items()]
    for how, times in found["modes"].items():
        rows += [f"{how}: " + ", ".join(f"{mode} {step_ms:.2f} ms" for mode, step_ms in times.items())]
    return "\n".join(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N")
    parser.add_argument("--repeats", type=int, default=1, help="processes for each figure of images/s")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the runner's study")
    parser.add_argument("--workers", type=int, default=8, help="of the DataLoader")
    parser.add_argument("--skip", type=int, default=10, help="steps before the timed ones")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("words", nargs="*", help="the runner's own words")
    asked = parser.parse_args()
    if not importlib.util.find_spec("pytorch_lightning"):
        sys.exit("Lightning is not installed: pip install 'cudnn-mode-runner[peers]'")
    device = device_here(asked.device)
    with tempfile.TemporaryDirectory() as folder:
        found = bench(merged(WORDS[device.partition(":")[0]], asked.words), device, asked, Path(folder))
    print(json.dumps(found, indent=1) if asked.json else lines(found))


if __name__ == "__main__":
    main()
