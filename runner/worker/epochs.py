"""How many steps the epochs of a trial are: only its data tell."""

from pathlib import Path

from runner import data as datasets
from runner.data import batches
from runner.layout import trial_file
from runner.trial import Trial


def count_steps(argument: str) -> int:
    """Write the number of steps of the trial whose trial.json lies beside this file. Returns the exit status."""
    answer = Path(argument)
    config = Trial.read(trial_file(answer.parent)).config
    train = config["train"]
    steps = train["epochs"] * batches.steps_per_epoch(datasets.load(config["dataset"]), train["batch_size"])
    answer.write_text(str(steps))
    return 0
