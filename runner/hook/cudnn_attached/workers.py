"""Whether the workers of a DataLoader draw the same random numbers: their states are compared once they are set up."""

import hashlib
import inspect
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from cudnn_attached.asked import asked
from cudnn_attached.doctor import tell
from cudnn_attached.place import place_of
from torch.utils.data._utils import worker

_original = worker._worker_loop
MOST_FILES = 64  # each epoch may start workers anew: the first ones tell


def watch_workers() -> None:
    """Have workers that are started from now on leave a file each."""
    worker._worker_loop = worker_loop


def worker_loop(*args: Any, **kwargs: Any) -> None:
    """A worker's work, with a look at its random states between the user's worker_init_fn and the first item."""
    given = inspect.signature(_original).bind(*args, **kwargs)
    names = given.arguments
    holder = names.get("dataset_holder")
    dataset = holder[-1] if holder else names.get("dataset")
    names["init_fn"] = _looking(names.get("init_fn"), dataset, names.get("base_seed"))
    _original(*given.args, **given.kwargs)


def _looking(init: Callable[[int], Any] | None, dataset: Any, loader: Any) -> Callable[[int], None]:
    def init_and_look(number: int) -> None:
        if init is not None:
            init(number)
        folder = Path(asked().folder)
        if len(list(folder.glob("worker-*"))) < MOST_FILES:
            init_place = place_of(init) if init is not None else ""
            found = {"loader": loader, "init": init_place, "states": dict(_states(dataset))}
            aside = folder / f".worker-{loader}-{number}-{os.getpid()}"
            aside.write_text(json.dumps(found))
            aside.rename(folder / aside.name.removeprefix("."))

    return init_and_look


def _states(dataset: Any) -> Iterator[tuple[str, str]]:
    """The states of the global generators and of those that the data set holds, as digests by name."""
    numpy = sys.modules.get("numpy")
    if numpy:
        yield "NumPy", _digest(numpy.random.get_state())
    yield "random", _digest(random.getstate())
    for _ in range(3):  # a Subset, or a wrapper of the user's, around the data set itself
        for name, value in getattr(dataset, "__dict__", {}).items():
            state = _state(value, numpy)
            if state is not None:
                yield f"{place_of(type(dataset))} {type(dataset).__name__}.{name}", _digest(state)
        dataset = getattr(dataset, "dataset", None)


def _state(value: Any, numpy: Any) -> Any:
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if isinstance(value, random.Random):
        return value.getstate()
    if numpy and isinstance(value, numpy.random.Generator):
        return value.bit_generator.state
    return value.get_state() if numpy and isinstance(value, numpy.random.RandomState) else None


def _digest(state: Any) -> str:
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def tell_shared_states(folder: Path) -> None:
    """Tell which generators stood alike in several workers of one loader."""
    seen: dict[tuple[Any, str], list[str]] = defaultdict(list)
    inits: dict[Any, str] = {}
    for path in sorted(folder.glob("worker-*")):
        found = json.loads(path.read_text())
        inits[found["loader"]] = found["init"]
        for name, state in found["states"].items():
            seen[found["loader"], name].append(state)
    for (loader, name), states in seen.items():
        if len(set(states)) == len(states):
            continue
        draws = "so that they draw the same numbers"
        if name in ("NumPy", "random"):
            tell(f"worker_init_fn seeds {name} alike in several workers of a DataLoader, {draws}", inits[loader])
        else:
            where, _, attribute = name.rpartition(" ")
            tell(f"{attribute} starts from the same state in several workers of a DataLoader, {draws}", where)
