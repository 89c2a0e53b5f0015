"""What the runner itself costs on a CPU: --help beside a bare Hydra app's, a trial's fixed cost, the main job.

From the repository: python scripts/bench_start.py [--repeats 10] [--rounds 5] [--main-job] [--json]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from hydra import compose, initialize_config_module

import runner.job  # noqa: F401 - the config refers to its resolver
from runner.study import Study

RUNNER = [sys.executable, "-m", "runner"]
SMALL = ["train.steps=10", "train.batch_size=8", "tracking=off"]
BARE = """
import hydra

@hydra.main(version_base="1.3", config_path=None)
def main(config):
    pass

main()
"""


def seconds(command: list[str], folder: str) -> float:
    """The wall time of a command that must go well."""
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def bench_help(repeats: int, folder: str) -> dict[str, float]:
    """Our --help and a bare Hydra app's, in turn: what else the machine does hits both."""
    bare = Path(folder, "bare.py")
    bare.write_text(BARE)
    commands = {"bare_s": [sys.executable, str(bare), "--help"], "runner_s": [*RUNNER, "--help"]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            times[name].append(seconds(command, folder))
    medians = {name: median(found) for name, found in times.items()}
    return {**medians, "ratio": medians["runner_s"] / medians["bare_s"]}


def bench_trial(rounds: int, folder: str) -> dict[str, float]:
    """A trial's wall time, from its start to the next one's, less what Hydra, building and training take of it.

    So everything of ours counts: starting the child, reading, writing and showing the record.
    """
    study = Path(folder, "study")
    seconds([*RUNNER, "-m", "cudnn=glob(*)", f"trials={rounds}", f"study={study}", *SMALL], folder)
    records = sorted(Study.open(study).records(), key=lambda record: record.started)
    start = [datetime.fromisoformat(record.started).timestamp() for record in records]
    inside = [speed.build_s + speed.train_s + speed.evaluate_s for record in records if (speed := record.speed)]
    around = [later - earlier - within for (earlier, later), within in zip(pairwise(start), inside, strict=False)]
    composition = bench_composition(len(records))
    return {"trials": len(around), "composition_s": composition, "fixed_s": median(around) - composition}


def bench_composition(repeats: int) -> float:
    """What Hydra takes to compose one job's config."""
    times = []
    with initialize_config_module("runner.conf", version_base="1.3"):
        for _ in range(repeats):
            start = time.perf_counter()
            compose("config", ["cudnn=benchmark", *SMALL], return_hydra_config=True)
            times.append(time.perf_counter() - start)
    return median(times)


def bench_main_job(folder: str) -> dict[str, float]:
    """The main job as it stands in the README: until its first round is on the screen, and altogether."""
    start, first_round = time.perf_counter(), float("nan")
    process = subprocess.Popen([*RUNNER, "-m", "cudnn=glob(*)"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[4/"):
            first_round = time.perf_counter() - start
    if process.wait():
        raise SystemExit("the main job failed")
    return {"first_round_s": first_round, "total_s": time.perf_counter() - start}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10, help="how often --help is called")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the study that gives a trial's fixed cost")
    parser.add_argument("--main-job", action="store_true", help="measure the main job too; takes minutes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {"help": bench_help(asked.repeats, folder), "trial": bench_trial(asked.rounds, folder)}
        if asked.main_job:
            found["main_job"] = bench_main_job(folder)
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        for part, figures in found.items():
            print(part, *(f"{name} {value:.3g}" for name, value in figures.items()), sep="  ")


if __name__ == "__main__":
    main()
