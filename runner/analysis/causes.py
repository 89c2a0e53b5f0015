"""Causes: what of all that changed between two cells most likely parts them, by what is known of each change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.analysis.match import differing
from runner.analysis.parting import Parting
from runner.cell import flatten
from runner.certificate import Facts
from runner.jsonfile import canonical

# The kinds of change with their keys, the likeliest first: a key that ends in a dot stands for all settings of a group.
# What surely gives other bits comes first, then what may choose other algorithms, then what only hints.
KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("another seed", ("seeds.",)),
    ("other data", ("dataset.", "train.batch_size")),
    ("other code of the model or data set", ("code",)),
    ("another model", ("model.",)),
    ("other precision", ("precision.",)),
    ("another number of steps", ("train.steps", "train.epochs")),
    ("other settings", ("train.", "phase")),
    ("another device", ("device",)),
    ("another number of threads", ("threads",)),
    ("another hash seed of Python", ("hash_seed",)),
    ("another PyTorch", ("torch", "torchvision")),
    ("another GPU", ("gpu_name",)),
    ("another processor", ("cpu",)),
    ("another cuDNN, CUDA or driver", ("cudnn", "cuda", "hip", "driver")),
    ("other switches of the processor", ("cpu_switches",)),
    ("another math library, Python or system", ("blas", "python", "platform")),
    ("other precision switches", ("conv_precision", "rnn_precision", "matmul_precision")),
    ("another workspace variable", ("workspace", "determinism.workspace")),
    ("another CUDA_LAUNCH_BLOCKING", ("launch_blocking",)),
    ("another mode or determinism", ("cudnn.", "determinism.")),
    ("another revision of the code in the working folder", ("git_revision",)),
    ("another version of this runner", ("runner",)),
    ("another machine or card", ("host", "gpu_uuid")),
    ("another way of running", ("isolation", "exclusive", "probe.", "repeat_in_process")),
)
_NAMES = [name for name, _ in KINDS]
_EXACT = {key: name for name, keys in KINDS for key in keys if not key.endswith(".")}
_GROUPS = {key: name for name, keys in KINDS for key in keys if key.endswith(".")}
# What can make other initial weights from the same seed.
_MAKE_WEIGHTS = (
    *("another seed", "other code of the model or data set", "another model", "another PyTorch"),
    "other switches of the processor",
)
# What another one brings with it: one change, not several.
_IMPLIED = {
    "other precision": ("other precision switches",),
    "another device": ("another GPU", "another cuDNN, CUDA or driver"),
}
# The environment says these too, as the process found them.
_SAID_BY_ENVIRONMENT = ("threads", "device")
# What hints at a cause at most: a look into the operations says more.
_FIRST_WEAK = "another revision of the code in the working folder"
WEAK = {*_NAMES[_NAMES.index(_FIRST_WEAK) :]}
LONGEST = 48


@dataclass(frozen=True)
class Change:
    """A setting, or a part of the environment, that is not the same in two cells."""

    key: str
    before: Any
    after: Any

    @property
    def kind(self) -> str:
        """What changed, in words."""
        group = f"{self.key.partition('.')[0]}."
        return _EXACT.get(self.key) or _GROUPS.get(group if "." in self.key else "", "other settings")

    def words(self, where: tuple[str, str]) -> str:
        """The key with both values: "threads 1 in A, 2 in B"."""
        return f"{self.key} {_short(self.before)} {where[0]}, {_short(self.after)} {where[1]}"


@dataclass(frozen=True)
class Cause:
    """Changes of one kind, which may be why two cells part; without `changes` it was seen by its effect alone."""

    name: str
    changes: tuple[Change, ...]
    seen: str = ""

    def words(self, where: tuple[str, str]) -> str:
        """The kind and what it is made of, in words."""
        parts = [*([self.seen] if self.seen else []), *(change.words(where) for change in self.changes)]
        return f"{self.name}: {'; '.join(parts)}"


def changes_of(before: Facts, after: Facts, versions: tuple[str, str]) -> list[Change]:
    """Everything recorded that is not the same in two cells; `versions` are those of the runner."""
    settings = [flatten(one.config) for one in (before, after)]
    said = [{key: flat[key] for key in flat if key not in _SAID_BY_ENVIRONMENT} for flat in settings]
    sides = [flat | one.environment for flat, one in zip(said, (before, after), strict=True)]
    here, there = (side | {"runner": version} for side, version in zip(sides, versions, strict=True))
    keys = differing(here, there)
    changes = [Change(key, here.get(key), there.get(key)) for key in keys]
    if {"model.name", "dataset.name"} & {*keys}:  # code on one side alone comes with the other's being ours
        changes = [one for one in changes if one.key != "code" or None not in (one.before, one.after)]
    implied = {kind for change in changes for kind in _IMPLIED.get(change.kind, ())}
    return [change for change in changes if change.kind not in implied]


def causes(changes: Sequence[Change], parted: Parting, own_data: bool = False) -> list[Cause]:
    """What may be why two cells part as they do, the likeliest first; nothing if nothing that is recorded changed.

    `own_data` says that the data come from a user's code.
    """
    kinds: dict[str, list[Change]] = {name: [] for name in _NAMES}
    for change in changes:
        kinds[change.kind].append(change)
    seen = _seen(kinds, parted)
    found = [Cause(name, tuple(kinds.get(name, ())), seen.get(name, "")) for name in _order(parted, own_data)]
    return [cause for cause in found if cause.changes or cause.seen]


def _order(parted: Parting, own_data: bool) -> list[str]:
    """The kinds, the likeliest first, as far as it is seen where the cells part."""
    order = list(_NAMES)
    if parted.by_end:
        order = ["another number of steps", *order]
    if parted.within:  # more steps later have had no effect there, unless by way of the schedule
        order.remove("another number of steps")
        order.insert(order.index(_FIRST_WEAK), "another number of steps")
    if not _parts_by_data(parted):  # then no setting of the data has had an effect
        order = [*(name for name in order if name != "other data"), "other data"]
    elif own_data:
        order = ["another seed", "other code of the model or data set", *order]
    if parted.initial:
        order = [*_MAKE_WEIGHTS, "other initial weights", *order]
    return list(dict.fromkeys(order))


def _parts_by_data(parted: Parting) -> bool:
    """Whether the data differ, and nothing in a step before them."""
    there = parted.data_step is not None and parted.data_step <= parted.steps  # else one training has ended before
    return there and (parted.initial or parted.first == (parted.data_step, 0))


def _seen(kinds: dict[str, list[Change]], parted: Parting) -> dict[str, str]:
    """The causes that show by their effect, by name, unless another change accounts for it."""
    found = {}
    if _parts_by_data(parted) and not kinds["another seed"]:
        found["other data"] = f"the inputs or targets of step {parted.data_step} differ"
    if parted.by_end and not kinds["another number of steps"]:
        found["another number of steps"] = f"one training ends after step {parted.steps}, another goes on"
    if parted.initial and not any(kinds[name] for name in _MAKE_WEIGHTS):
        found["other initial weights"] = (
            "they differ before the first step, though seed, model and PyTorch are the same"
        )
    return found


def _short(value: Any) -> str:
    text = canonical(value).strip('"')
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
