"""Combinations of settings that cannot work, though each of them is right."""

from runner.errors import ConfigError
from runner.schema_datasets import CUSTOM_VIEW
from runner.schema_groups import Train
from runner.schema_models import TASKS
from runner.settings import Settings, view_of


def check_pairs(settings: Settings) -> None:
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
    own = custom and settings.model.name == "custom"
    if settings.dataset.name == "custom" and settings.dataset.classes is None and not own:
        way_out = f"is needed by model={settings.model.name} in the view {view_of(settings)}: dataset.classes=N"
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
