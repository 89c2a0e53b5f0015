"""What the machine decides where the settings leave it open: enough work to answer the question, and no more."""

from dataclasses import replace
from typing import Any

from runner.settings import Settings

# On a CPU the flags cannot act: the work shows the tool, and is short. On a GPU a step must be long beside the time
# that the host needs to launch it, and the steps must be many beside the first ones.
CPU: dict[str, int] = {"trials": 5, "steps": 44, "batch_size": 32, "size": 8}
GPU: dict[str, int] = {"trials": 10, "steps": 120, "batch_size": 256, "size": 32}
# Fewer trials cannot tell one variance from another; and what a budget of time goes to.
MANY_ROUNDS = 20


def device_of(asked: str, gpu: bool) -> str:
    """The device's name for torch: "auto" (and "all") is CUDA, or the CPU where there is none."""
    return asked if asked not in ("auto", "all") else "cuda" if gpu else "cpu"


def many_rounds(asked: list[Settings]) -> bool:
    """Whether a study that gives no number of rounds takes many: it has a budget, or is about the seeds' noise.

    It is about the seeds' noise if some of its cells vary seeds and others none.
    """
    varied = {bool(settings.seeds.vary) for settings in asked}
    return len(varied) == 2 or any(settings.budget for settings in asked)


def settled(settings: Settings, device: str, cores: int, rounds: int | None = None) -> Settings:
    """The settings with every open value decided for this device; `rounds` where the question says how many."""
    chosen = CPU if device == "cpu" else GPU
    train: dict[str, Any] = {"batch_size": settings.train.batch_size or chosen["batch_size"]}
    if settings.train.steps is None and settings.train.epochs is None:
        train["steps"] = chosen["steps"]
    dataset = settings.dataset
    if dataset.name == "digits" and dataset.size is None:
        dataset = replace(dataset, size=chosen["size"])
    return replace(
        settings,
        device=device,
        dataset=dataset,
        train=replace(settings.train, **train),
        threads=settings.threads or cores,
        trials=settings.trials or rounds or chosen["trials"],
    )
