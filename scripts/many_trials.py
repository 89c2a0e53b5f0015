"""What a study of very many trials costs its own process, in memory and time a trial, beside Hydra's own sweep.

The same command line is given to the runner and to an app that does nothing, under Hydra's own sweeper.
From the repository: python scripts/many_trials.py [--rounds 300]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from runner.study import Study

TESTS = Path(__file__).resolve().parents[1] / "tests"
MOST_MB, MOST_S = 0.2, 0.2  # a trial, above Hydra's own
DATA = ["model=custom", "dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image"]
WORDS = [*DATA, "model._target_=planted.Plain", "dataset.classes=10", "train.steps=10", "train.batch_size=8"]
COMMAND = ["cudnn=glob(*)", *WORDS, "threads=1", "tracking=off"]
BARE = """
import sys
import hydra
import runner.job  # the config refers to its resolver

@hydra.main(version_base="1.3", config_path="pkg://runner.conf", config_name="config")
def main(config):
    print(f"[{hydra.core.hydra_config.HydraConfig.get().job.num + 1}/", flush=True)

main()
"""
LINE = re.compile(r"^\[(\d+)/")
Seen = dict[int, tuple[float, float]]


def watched(command: list[str], folder: str, wanted: list[int]) -> Seen:
    """Run a command that prints a line `[NUMBER/` a job; its time in s and its memory in MB when it prints these."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen: Seen = {}
    for line in process.stdout:
        found = LINE.match(line)
        if found and int(found[1]) in wanted:
            seen[int(found[1])] = time.perf_counter(), resident_mb(process.pid)
    if process.wait():
        raise SystemExit(f"{command} ended with {process.returncode}")
    return seen


def resident_mb(pid: int) -> float:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def growth(seen: Seen) -> dict[str, object]:
    """Time and memory a trial, from the first to the last that was looked at."""
    first, last = min(seen), max(seen)
    (began, least), (ended, most) = seen[first], seen[last]
    count = last - first
    resident = {str(number): round(memory, 1) for number, (_, memory) in seen.items()}
    return {"s_a_trial": (ended - began) / count, "mb_a_trial": (most - least) / count, "resident_mb": resident}


def inside(study: Study, wanted: list[int]) -> float:
    """The seconds that a trial builds, trains and evaluates, which is the trial's own affair, on average."""
    records = sorted(study.records(), key=lambda record: datetime.fromisoformat(record.started))
    speeds = [record.speed for record in records[min(wanted) : max(wanted)] if record.speed]
    return sum(speed.build_s + speed.train_s + speed.evaluate_s for speed in speeds) / len(speeds)


def measure(rounds: int, folder: str) -> dict[str, object]:
    """Both sweeps, one after the other."""
    trials = 4 * rounds
    wanted = [max(1, trials // 12), trials // 2, trials]
    ours = growth(
        watched([sys.executable, "-m", "runner", "-m", *COMMAND, f"trials={rounds}", "study=s"], folder, wanted)
    )
    numbers = ["hydra/sweeper=basic", f"trial.number=range(0,{rounds})", "study=bare", "hydra.sweep.dir=bare"]
    bare = growth(watched([sys.executable, "-c", BARE, "-m", *COMMAND, *numbers], folder, wanted))
    within = inside(Study(Path(folder, "s")), wanted)
    above_s = float(ours["s_a_trial"]) - float(bare["s_a_trial"]) - within  # type: ignore[arg-type]
    above_mb = float(ours["mb_a_trial"]) - float(bare["mb_a_trial"])  # type: ignore[arg-type]
    above = {"s_a_trial": above_s, "mb_a_trial": above_mb, "good": above_s <= MOST_S and above_mb <= MOST_MB}
    return {"trials": trials, "runner": ours, "hydra": bare, "training_s": within, "above_hydra": above}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="rounds of four trials each")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(asked.rounds, folder), indent=1))


if __name__ == "__main__":
    main()
