"""The settings as types: every key of conf/ with its type, its bounds and the combinations that make sense.

A DictConfig comes in, frozen dataclasses go out; after this module no DictConfig travels.
"""

import math
import re
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, MissingMandatoryValue, OmegaConfBaseException

from runner.duration import seconds_of
from runner.errors import ConfigError
from runner.plan import Plan
from runner.recipe import SIZES, Published, Recipe, check_row
from runner.schema_attach import Attach, attached
from runner.schema_groups import (
    CUSTOM_VIEW,
    DATASETS,
    Calling,
    Cudnn,
    Determinism,
    Place,
    Precision,
    Probe,
    Seeds,
    Tracking,
    Train,
    allowed,
)
from runner.schema_models import MODELS, TASKS

Group = TypeVar("Group")


@dataclass(frozen=True, kw_only=True)
class Scalars:
    """The keys that belong to no group."""

    study: str
    device: str
    isolation: str = field(metadata=allowed("forkserver", "spawn"))
    threads: int | None = field(metadata={"least": 1})
    trials: int | None = field(metadata={"least": 1})
    timeout: float | None = field(metadata={"least": 0.001, "below": 1e9})
    retry: str = field(metadata=allowed("failed", "none"))
    exclusive: bool
    phase: str = field(metadata=allowed("train", "infer", "calls", "attach"))
    repeat_in_process: int = field(metadata={"least": 1})
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


GROUPS: dict[str, Any] = {
    "cudnn": Cudnn,
    "precision": Precision,
    "determinism": Determinism,
    "seeds": Seeds,
    "probe": Probe,
    "train": Train,
    "calls": Calling,
    "attach": Attach,
    "plan": Plan,
    "tracking": Tracking,
    "trial": Place,
}

# Only where, when or how often: what differs in nothing else is the same cell.
NOT_IN_CELL = (
    *("tracking", "trial", "plan", "study", "trials", "timeout", "retry", "exclusive", "budget"),
    *("recipe", "recipe_size"),
)


def load(config: DictConfig) -> Settings:
    """Turn a composed config into settings. Raises ConfigError naming the key, the value and what is allowed."""
    try:
        given = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = error.full_key or "config"
        raise ConfigError(
            key, "???", f"is not set or cannot be resolved ({_first(error)}); give it as {key}=VALUE"
        ) from error
    assert isinstance(given, dict)
    values: dict[str, Any] = {str(key): value for key, value in given.items()}
    for key in (*GROUPS, "model", "dataset"):
        if key not in values:
            raise ConfigError(key, "(deleted)", "is needed; leave it in")
    groups = {key: _typed(group, values.pop(key), f"{key}.") for key, group in GROUPS.items()}
    groups["model"] = _family("model", values.pop("model"), MODELS)
    groups["dataset"] = _family("dataset", values.pop("dataset"), DATASETS)
    for key, group in groups.items():
        _check_bounds(group, f"{key}.")
    groups["recipe"] = _recipe(values.pop("recipe", None))
    scalars = _typed(Scalars, values, "")
    _check_bounds(scalars, "")
    settings = Settings(**groups, **asdict(scalars))
    if settings.device == "mps":
        raise ConfigError("device", "mps", "has no cuDNN, so that no flag acts there; choose auto, cpu, cuda or all")
    if not re.fullmatch(r"auto|cpu|all|cuda(:\d+)?", settings.device):
        raise ConfigError("device", settings.device, "choose one of auto, cpu, cuda, cuda:0, cuda:1, ..., all")
    _check_pairs(settings)
    if settings.budget is not None:
        seconds_of(settings.budget)
    return settings


def _family(key: str, values: Any, families: dict[str, Any]) -> Any:
    name = values.get("name") if isinstance(values, dict) else values
    if name not in families:
        raise ConfigError(f"{key}.name", name, f"choose one of {', '.join(families)}")
    return _typed(families[name], values, f"{key}.")


def _recipe(values: Any) -> Recipe | None:
    if values is None:
        return None
    rows = values.get("published") if isinstance(values, dict) else None
    if not isinstance(rows, list):
        raise ConfigError("recipe.published", rows, "a list of published figures is needed; see docs/recipes.md")
    published = []
    for index, row in enumerate(rows):
        prefix = f"recipe.published[{index}]."
        published.append(_typed(Published, row, prefix))
        _check_bounds(published[-1], prefix)
        check_row(published[-1], prefix)
    return replace(_typed(Recipe, values | {"published": []}, "recipe."), published=published)


def _typed(group: type[Group], values: Any, prefix: str) -> Group:
    if not isinstance(values, dict):
        raise ConfigError(prefix.rstrip("."), values, f"a group with the keys {_names(group)} is needed")
    node = OmegaConf.structured(group)
    OmegaConf.set_readonly(node, False)  # frozen classes come read-only; filling them once is what this is for
    try:
        result = OmegaConf.to_object(OmegaConf.merge(node, values))
    except ConfigKeyError as error:
        key = str(error.full_key)
        raise ConfigError(f"{prefix}{key}", values.get(key), f"no such key; there are {_names(group)}") from error
    except MissingMandatoryValue as error:
        missing = next(item.name for item in fields(group) if item.name not in values)  # type: ignore[arg-type]
        raise ConfigError(f"{prefix}{missing}", "(deleted)", "is needed; leave it in") from error
    except OmegaConfBaseException as error:
        key = error.full_key or ""
        raise ConfigError(f"{prefix}{key}", values.get(key.split("[")[0]), _first(error)) from error
    for item in fields(group):  # type: ignore[arg-type]
        if item.type is bool and type(values.get(item.name)) is int and values[item.name] not in (0, 1):
            raise ConfigError(f"{prefix}{item.name}", values[item.name], "must be true or false")
    return result  # type: ignore[return-value]


def _first(error: Exception) -> str:
    return str(error).splitlines()[0]


def _names(group: Any) -> str:
    return ", ".join(item.name for item in fields(group))


def _check_bounds(group: Any, prefix: str) -> None:
    for item in fields(group):
        value, bounds = getattr(group, item.name), item.metadata
        if value is None:
            continue
        for one in value if isinstance(value, list) else [value]:
            if "one_of" in bounds and one not in bounds["one_of"]:
                choices = ", ".join(str(choice) for choice in bounds["one_of"])
                raise ConfigError(f"{prefix}{item.name}", one, f"choose one of {choices}")
            if isinstance(one, float) and not math.isfinite(one):
                raise ConfigError(f"{prefix}{item.name}", one, "must be a finite number")
            if "least" in bounds and one < bounds["least"]:
                raise ConfigError(f"{prefix}{item.name}", one, f"must be at least {bounds['least']}")
            if "below" in bounds and one >= bounds["below"]:
                raise ConfigError(f"{prefix}{item.name}", one, f"must be below {bounds['below']}")


def _check_pairs(settings: Settings) -> None:
    """Refuse combinations of which each part is right: what a model needs, a data set may not have."""
    task_views = TASKS[settings.model.name]
    view, offered = settings.dataset.view, settings.dataset.VIEWS
    if view is not None and view not in offered:
        raise ConfigError("dataset.view", view, f"dataset={settings.dataset.name} offers {', '.join(offered)}")
    if not set(task_views) & set([view] if view else offered):
        raise ConfigError(
            "model",
            settings.model.name,
            f"needs data with the view {' or '.join(task_views)}, "
            f"but dataset={settings.dataset.name} offers {view or ', '.join(offered)}",
        )
    if getattr(settings.model, "bidirectional", False) and view_of(settings) == "next":
        raise ConfigError("model.bidirectional", True, "would read the characters it must predict; set it to false")
    if settings.train.keep_logits and view_of(settings) in ("forecast", CUSTOM_VIEW):
        lacking = f"the view {view_of(settings)} has no classes; set it to false"
        raise ConfigError("train.keep_logits", True, lacking)
    if settings.tracking.name == "server" and settings.tracking.uri is None:
        raise ConfigError("tracking.uri", None, "tracking=server needs it: tracking.uri=http://HOST:PORT")
    if settings.train.steps is not None and settings.train.epochs is not None:
        raise ConfigError("train.epochs", settings.train.epochs, "train.steps is given too; set one of them to null")
    _check_train(settings.train)
    _check_probe(settings)
    _check_repetition(settings)
    _check_calls(settings)
    _check_attach(settings)
    _check_custom(settings)


def _check_custom(settings: Settings) -> None:
    """Refuse a user's own data without a number of classes where one is needed, and the view custom where none fits."""
    custom = view_of(settings) == CUSTOM_VIEW
    if settings.dataset.name == "custom" and settings.dataset.classes is None and not custom:
        way_out = f"is needed in the view {view_of(settings)}: dataset.classes=N"
        raise ConfigError("dataset.classes", None, way_out)
    if custom and settings.phase == "calls":
        raise ConfigError("phase", "calls", "needs inputs that are one tensor; take another dataset.view")


def _check_train(train: Train) -> None:
    """Refuse a momentum that is none, and what would begin or end only after the last step."""
    if (train.schedule == "step") != (train.decay_every is not None):
        raise ConfigError("train.decay_every", train.decay_every, "goes with train.schedule=step; give both or none")
    if train.schedule == "one_cycle" and train.warmup_steps:
        raise ConfigError("train.warmup_steps", train.warmup_steps, "train.schedule=one_cycle has its own; set it to 0")
    if train.clip_norm == 0:
        raise ConfigError("train.clip_norm", 0.0, "would take all gradients away; must be above 0, or null")
    if train.nesterov and not train.momentum:
        raise ConfigError("train.nesterov", True, "needs train.momentum above 0")
    for key, asked in (("warmup_steps", True), ("poke_step", train.poke != "none")):
        if asked and train.steps is not None and getattr(train, key) > train.steps:
            raise ConfigError(f"train.{key}", getattr(train, key), f"at most train.steps={train.steps}")


def _check_probe(settings: Settings) -> None:
    """Refuse a probe that could see nothing of what it is asked for."""
    probe, train = settings.probe, settings.train
    if probe.name == "ops" and train.compile != "off":
        way_out = "take probe=modules, or train.compile=off"
        raise ConfigError("probe", "ops", f"sees nothing inside a model under train.compile={train.compile}; {way_out}")
    if probe.repeat and probe.name != "ops":
        raise ConfigError("probe.repeat", True, f"repeats operations, and probe={probe.name} sees none; take probe=ops")
    if probe.name == "kernels" and train.steps is not None and probe.steps > train.steps:
        raise ConfigError("probe.steps", probe.steps, f"that step is profiled: at most train.steps={train.steps}")


def _check_repetition(settings: Settings) -> None:
    """Refuse to train again where nothing trains, or where a probe looks at the first training alone."""
    times, needed = settings.repeat_in_process, {"phase": "train", "probe": "none"}
    for key, value in (("phase", settings.phase), ("probe", settings.probe.name)):
        if times > 1 and value != needed[key]:
            raise ConfigError("repeat_in_process", times, f"must be 1 with {key}={value}; take {key}={needed[key]}")


def _check_calls(settings: Settings) -> None:
    """Refuse what calls cannot be, and a bare layer where something is to be learned or answered."""
    if settings.phase == "calls":
        for key, value, way_out in (
            ("probe", settings.probe.name, "calls.kernels=true tells the kernels"),
            ("train.compile", settings.train.compile, "the module is called as it is"),
        ):
            if value not in ("none", "off"):
                raise ConfigError(key, value, f"is not for phase=calls: {way_out}")
        shapes = max(len(getattr(settings.dataset, key, [])) for key in ("sizes", "lengths"))
        if settings.calls.times < shapes:
            raise ConfigError("calls.times", settings.calls.times, f"at least {shapes}, a call on each of the shapes")
    elif not getattr(settings.model, "head", True):
        way_out = "take phase=calls, or model.head=true"
        raise ConfigError("model.head", False, f"phase={settings.phase} needs one; {way_out}")


def _check_attach(settings: Settings) -> None:
    """Refuse to attach to nothing, and what only a training of ours could do."""
    if settings.phase != "attach":
        return
    if not settings.attach.command:
        raise ConfigError("attach.command", [], "is needed; give it as python -m runner.attach -- COMMAND")
    for key, value, needed in (
        ("precision", settings.precision.name, "default"),
        ("probe", settings.probe.name, "none"),
        ("seeds.vary", settings.seeds.vary, []),
        ("train.epochs", settings.train.epochs, None),
    ):
        if value != needed:
            raise ConfigError(key, value, "is up to the script that is attached to; leave it out")


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
