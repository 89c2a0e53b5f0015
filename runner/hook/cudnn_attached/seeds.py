"""Whether the script seeds PyTorch, and whether it does so before the first weights are drawn."""

import functools
from typing import Any

import torch
from cudnn_attached.doctor import tell
from cudnn_attached.place import called_by_torch, place
from torch.nn.modules.module import register_module_parameter_registration_hook

_seen: dict[str, str] = {}  # where the first weights were made, where PyTorch was seeded


def watch_seeds() -> None:
    """Keep where both happen for the first time."""
    seed = torch.manual_seed

    @functools.wraps(seed)
    def seed_watched(*args: Any, **kwargs: Any) -> Any:
        if "seed" not in _seen and not called_by_torch():
            _seen["seed"] = place()
            if "weights" in _seen:
                tell(f"seeds PyTorch late: the first weights were drawn before, at {_seen['weights']}")
        return seed(*args, **kwargs)

    torch.manual_seed = seed_watched
    torch.random.manual_seed = seed_watched

    def registered(*_: Any) -> None:
        _seen["weights"] = place()
        handle.remove()

    handle = register_module_parameter_registration_hook(registered)


def tell_unseeded() -> None:
    """Tell, at the first step, if PyTorch was never seeded."""
    if "seed" not in _seen:
        where = _seen.get("weights", "")
        tell("draws the first weights, and torch.manual_seed() was never called: each process starts elsewhere", where)
