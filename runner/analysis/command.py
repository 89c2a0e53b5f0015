"""Command lines to try: a study's own command for one of its cells, with one thing changed, before and after."""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from runner.analysis.candidate import LEAST_TRIALS
from runner.cell import flatten
from runner.mode import MODES

PROBED_TRIALS = 3
TRIED_STEPS = 50  # a steady step time needs more than a few, and weights that are equal after two say little
# The groups of conf/ whose choices a cell shows by its values alone.
SHIPPED: dict[str, dict[str, dict[str, Any]]] = {
    "cudnn": {name: dict(zip(("deterministic", "benchmark"), pair, strict=True)) for pair, name in MODES.items()},
    "determinism": {
        "flags": {"algorithms": False, "warn_only": False, "fill_memory": True, "workspace": None},
        "full": {"algorithms": True, "warn_only": False, "fill_memory": True, "workspace": ":4096:8"},
    },
    "seeds": {
        "fixed": {"vary": []},
        "all": {"vary": ["init", "order", "augment", "dropout"]},
        **{name: {"vary": [name]} for name in ("init", "order", "augment", "dropout")},
    },
}
NAMED = ("model", "dataset", "precision", "probe", "tracking")
SWEPT = re.compile(r"(glob|choice|range|interval|shuffle|sort|tag)\(|[^\[\]{}()'\"]*,")
CONTINUED = {"study", "budget", "trials", "retry"}
DROPPED = {*CONTINUED, "probe"}


def has(config: dict[str, Any], change: str) -> bool:
    """Whether a cell with these settings has what an override says already."""
    key, _, value = change.partition("=")
    if key in SHIPPED:
        return _choice(config, key) == value
    flat = flatten(config)
    return key in flat and _text(flat[key]) == value


def done_in(other: dict[str, Any], config: dict[str, Any], change: str) -> bool:
    """Whether another cell's settings are these with the change made, and nothing else."""
    group = change.partition("=")[0].partition(".")[0]
    rest = [{key: value for key, value in one.items() if key != group} for one in (other, config)]
    return other != config and has(other, change) and rest[0] == rest[1]


def trying(command: Sequence[str], config: dict[str, Any], change: str, folder: str = "") -> str:
    """The command of a study of one cell as it is and with a change: whether that helps, and what it costs.

    `command` is the study's own, which may have swept over much more than this cell, and trained for a probe's few
    steps. `folder` is the study's; the new one's is named beside it.
    """
    trials = max(LEAST_TRIALS, _trials(command))
    few = (flatten(config).get("train.steps") or TRIED_STEPS) < TRIED_STEPS
    words = _without(_of_cell(command, config), [change, *(["train.steps"] if few else [])])
    longer = [f"train.steps={TRIED_STEPS}"] if few and not change.startswith("train.steps=") else []
    longer += [_arms(config, change), "probe=none", f"trials={trials}"]
    return shlex.join([*words, *longer, *_beside(folder, _slug(change))])


def deeper(command: Sequence[str], config: dict[str, Any], steps: int, level: str = "ops", folder: str = "") -> str:
    """The command of a short study of one cell that traces its first steps; `folder` as for `trying`."""
    words = _without(_of_cell(command, config), ["train.steps", "train.epochs", "repeat_in_process"])
    probe = [f"probe={level}", f"probe.steps={steps}", *(["probe.repeat=true"] if level == "ops" else [])]
    short = [f"train.steps={steps}", f"trials={PROBED_TRIALS}"]
    return shlex.join([*words, *probe, *short, *_beside(folder, "why")])


def continuing(command: Sequence[str], folder: str, rounds: int | None = None) -> str:
    """The command that goes on with a study where its own was given; with `rounds` it makes the study as long."""
    kept = [word for word in command if _key(word) not in CONTINUED]
    return shlex.join([*kept, *([f"trials={rounds}"] if rounds else []), f"study={_text(folder)}"])


def _slug(change: str) -> str:
    """A change as a part of a folder's name: each has a study of its own."""
    return f"try-{re.sub(r'[^A-Za-z0-9]+', '-', change).strip('-')}"


def _beside(folder: str, name: str) -> list[str]:
    """Where a further study is to lie, beside the one at hand; nothing where that is not known."""
    return [f"study={_text(f'{folder}-{name}')}"] if folder else []


def _of_cell(command: Sequence[str], config: dict[str, Any]) -> list[str]:
    """The command with the cell's own values where it sweeps, and without what belongs to that study."""
    kept = [word for word in command if _key(word).partition(".")[0] not in DROPPED]
    return [_fixed(word, config) if "=" in word and SWEPT.match(word.partition("=")[2]) else word for word in kept]


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0] if "=" in word else ""


def _fixed(word: str, config: dict[str, Any]) -> str:
    key, value = word.partition("=")[0], _value(config, _key(word))
    return word if value is None else f"{key}={value}"


def _value(config: dict[str, Any], key: str) -> str | None:
    """A cell's value of a key as an override has it, None if the cell does not show it."""
    if key in SHIPPED:
        return _choice(config, key)
    if key in NAMED:
        group = config.get(key)
        return str(group.get("name")) if isinstance(group, dict) else group
    flat = flatten(config)
    return _text(flat[key]) if key in flat else None


def _choice(config: dict[str, Any], group: str) -> str | None:
    """The shipped file of a group that gives a cell's values."""
    there = config.get(group, {})
    return next((name for name, due in SHIPPED[group].items() if due.items() <= there.items()), None)


def _text(value: Any) -> str:
    """A value in Hydra's grammar."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[\w./-]+", value) else f'"{value}"'
    return json.dumps(value)


def _without(words: Sequence[str], changes: Sequence[str]) -> list[str]:
    """The words without those that set what is changed, or a part of it that every choice of the group sets."""
    keys = {change.partition("=")[0] for change in changes}
    keys |= {f"{group}.{name}" for group in keys & SHIPPED.keys() for name in _names(group)}
    return [word for word in words if _key(word) not in keys]


def _names(group: str) -> set[str]:
    return {name for values in SHIPPED[group].values() for name in values}


def _arms(config: dict[str, Any], change: str) -> str:
    """An override that sweeps over what the cell has and what is to be tried."""
    key, _, after = change.partition("=")
    before = _value(config, key)
    return change if before is None else f"{key}={before},{after}"


def _trials(command: Sequence[str]) -> int:
    said = [word.partition("=")[2] for word in command if _key(word) == "trials"]
    return int(said[-1]) if said and said[-1].isdigit() else 0
