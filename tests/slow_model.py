"""Models that wait at a known place, so that a test can do something meanwhile."""

import os
import time
from pathlib import Path

import submitit
from planted import Plain


class WaitsOnce(Plain):
    """The first process of all writes its job of hydra/launcher=slurm to `marker` and stays; the others go on."""

    def __init__(self, marker: str):
        super().__init__()
        try:
            with open(marker, "x") as file:
                file.write(submitit.JobEnvironment().job_id)
        except FileExistsError:
            return
        time.sleep(600)


class WaitsForOthers(Plain):
    """Goes on when so many tasks of a SLURM array have come here: none does all of the work before another starts."""

    def __init__(self, folder: str, tasks: int):
        super().__init__()
        Path(folder, os.environ["SLURM_ARRAY_TASK_ID"]).touch()
        deadline = time.monotonic() + 60
        while len(list(Path(folder).iterdir())) < tasks and time.monotonic() < deadline:
            time.sleep(0.05)
