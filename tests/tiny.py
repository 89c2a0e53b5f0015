"""The smallest studies through the command line, which the tests of estimate and budget share."""

from pathlib import Path

from conftest import call

CUSTOM = ["model=custom", "dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image"]
TINY = [*CUSTOM, "dataset.classes=10", "train.steps=10", "train.batch_size=8", "threads=1"]
PLAIN = [*TINY, "model._target_=planted.Plain"]


def done(*words: str, folder: Path) -> tuple[int, str]:
    """Exit code and output of one command, without MLflow."""
    process = call("runner", "-m", *words, "tracking=off", "study=s", folder=folder)
    return process.returncode, process.stdout + process.stderr
