"""What one job was asked to do: the settings, and what of them makes its cell."""

from dataclasses import asdict, dataclass, field
from typing import Any

from runner.plan import Plan
from runner.recipe import SIZES, Recipe
from runner.schema_attach import Attach, attached
from runner.schema_groups import Calling, Cudnn, Determinism, Place, Precision, Probe, Seeds, Tracking, Train, allowed
from runner.schema_models import TASKS

# Only where, when or how often: what differs in nothing else is the same cell.
NOT_IN_CELL = (
    *("tracking", "trial", "plan", "study", "trials", "timeout", "retry", "exclusive", "budget"),
    *("recipe", "recipe_size"),
)


@dataclass(frozen=True, kw_only=True)
class Scalars:
    """The keys that belong to no group."""

    study: str
    device: str
    isolation: str = field(metadata=allowed("forkserver", "spawn"))
    # More threads than any machine has cores cannot all be started; the study's process lists all rounds in memory.
    threads: int | None = field(metadata={"least": 1, "below": 4097})
    trials: int | None = field(metadata={"least": 1, "below": 10**6})
    timeout: float | None = field(metadata={"least": 0.001, "below": 1e9})
    retry: str = field(metadata=allowed("failed", "none"))
    exclusive: bool
    phase: str = field(metadata=allowed("train", "infer", "calls", "attach"))
    repeat_in_process: int = field(metadata={"least": 1, "below": 10**6})
    budget: str | None
    recipe_size: str = field(metadata=allowed(*SIZES))


@dataclass(frozen=True, kw_only=True)
class Settings(Scalars):
    """Everything that one job was asked to do, typed and checked.

    `trials` and `device` may still be open (None, "auto"): the machine decides them, see runner.workload.
    """

    cudnn: Cudnn
    model: Any
    dataset: Any
    precision: Precision
    determinism: Determinism
    seeds: Seeds
    probe: Probe
    train: Train
    calls: Calling
    attach: Attach
    plan: Plan
    tracking: Tracking
    trial: Place
    recipe: Recipe | None = None


def view_of(settings: Settings) -> str:
    """The view of the data that the model works on: the one asked for, else the first that both know."""
    if settings.dataset.view is not None:
        return str(settings.dataset.view)
    return next(view for view in TASKS[settings.model.name] if view in settings.dataset.VIEWS)


def cell_config(settings: Settings) -> dict[str, Any]:
    """The settings of a cell as plain values: without what only says where, when or how often."""
    config = {key: value for key, value in asdict(settings).items() if key not in NOT_IN_CELL}
    config["device"] = settings.device.split(":")[0]
    config["dataset"]["view"] = view_of(settings)
    if settings.phase != "calls":
        del config["calls"]  # no other cell depends on it
    if settings.phase == "attach":
        return attached(config)
    del config["attach"]
    return config
