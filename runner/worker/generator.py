"""The random generator that an operation draws from, and its state."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch
from torch.utils._pytree import tree_leaves


def generator_for(args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Generator:
    """The generator from which an operation with these arguments would draw: the one given, or that of its device."""
    leaves = tree_leaves((list(args), dict(kwargs)))
    given = next((leaf for leaf in leaves if isinstance(leaf, torch.Generator)), None)
    if given is not None:
        return given
    said = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    lying = [leaf.device for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_cuda]
    return default_generator(next(iter(said + lying), torch.device("cpu")))


def default_generator(device: torch.device) -> torch.Generator:
    """The generator from which is drawn on a device where none is given."""
    if device.type != "cuda":
        return torch.default_generator
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]


def state_digest(generator: torch.Generator) -> str:
    """A digest of a generator's state. A CUDA generator's lies on the host: nothing waits."""
    with _DisableTorchDispatch():
        state = generator.get_state().numpy().tobytes()
    return hashlib.sha256(state).hexdigest()[:32]
