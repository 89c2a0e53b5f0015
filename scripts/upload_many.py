"""Uploads a study of very many generated trials twice: `python scripts/upload_many.py [TRIALS] [URI]`.

Prints how long it takes, how much memory the command needs on the way, and what is in MLflow afterwards.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from synthetic_study import deep

from runner import tracking
from runner.tracking.store import connect, every_experiment, search

EVERY_S = 5.0


def main() -> None:
    """Make the study, upload it twice, count."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
    with tempfile.TemporaryDirectory() as folder:
        uri = sys.argv[2] if len(sys.argv) > 2 else f"sqlite:///{folder}/mlflow.db"
        study = deep(Path(folder) / "study", trials)
        tracking.check(uri, [])
        before: dict[str, Any] = {}
        for attempt in ("first", "second"):
            print(f"{attempt} upload of {trials} trials to {tracking.masked(uri)}")
            watched([sys.executable, "-m", "runner.upload", str(study.folder), f"tracking.uri={uri}"])
            client = connect(uri)
            found = list(search(client, every_experiment(client), f"tags.study = '{study.asked()['id']}'"))
            print(f"  {len(found)} runs, {sum(run.info.status == 'FINISHED' for run in found)} of them finished")
            there = {run.info.run_id: (vars(run.info), run.data.metrics, run.data.params) for run in found}
            print("  nothing has changed" if there == before else f"  {len(there.keys() - before.keys())} new runs")
            before = there


def watched(command: list[str]) -> None:
    """Run a command, printing how much memory it has from time to time."""
    process = subprocess.Popen(command)
    began, looks = time.monotonic(), []
    while process.poll() is None:
        try:
            looks.append(psutil.Process(process.pid).memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            break
        time.sleep(EVERY_S if len(looks) > 4 else 1.0)
    process.wait()
    quarters = [looks[len(looks) * part // 4] for part in (1, 2, 3)] + looks[-1:]
    memory = ", ".join(f"{look:.0f}" for look in quarters)
    print(f"  exit code {process.returncode}, {time.monotonic() - began:.0f} s; MiB at each quarter: {memory}")


if __name__ == "__main__":
    main()
