"""Noise in one operation of a training of the shipped models: the probe names this operation, and no other."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from noisy_trainings import (
    WAYS,
    WORKLOADS,
    kind,
    planted_everywhere,
    plants,
    traced,
    what_is_found,
    where,
    wrongly_found,
)
from planted_ops import How
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# So many kinds of operations are in the quick tests at least; it depends on the version of PyTorch. 60 are needed.
LEAST = dict.fromkeys(WORKLOADS, 15) | {"resnet": 8}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_each_kind_of_operation_is_named_alone(name: str, least: int, tmp_path: Path) -> None:
    clean = traced(tmp_path, name, 0, 1, True)
    chosen = [one for one in plants(clean, kind) if one.operation.name.startswith(WORKLOADS[name].quick)]
    assert len(chosen) >= least
    assert not wrongly_found(chosen, ["process", "repeat"], clean, partial(traced, tmp_path, name, 1, 1, True))


@pytest.mark.slow
@pytest.mark.parametrize(("again", "how"), WAYS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_each_operation_in_each_place_is_named_alone(name: str, again: bool, how: How, tmp_path: Path) -> None:
    count, wrong = planted_everywhere(tmp_path, name, again, how)
    assert not wrong
    assert count >= LEAST[name]


@pytest.mark.parametrize("name", WORKLOADS)
def test_nothing_is_named_where_nothing_is_planted(name: str, tmp_path: Path) -> None:
    assert what_is_found(*(traced(tmp_path, name, number, 2, True) for number in (0, 1))) == []


class Owners(TorchDispatchMode):
    """Lists which modules own the parameters that each operation reads, found by their memory alone."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.owner = {
            parameter.data_ptr(): name
            for name, module in model.named_modules()
            for parameter in module.parameters(recurse=False)
        }
        self.seen: list[tuple[str, set[str]]] = []
        model.register_forward_pre_hook(lambda *_: self.seen.clear())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        read = [one.data_ptr() for one in tree_leaves(args) if isinstance(one, Tensor)]
        if str(func).startswith("aten.") and func is not torch.ops.aten.detach.default:  # autograd's own handles
            self.seen.append((str(func), {self.owner[place] for place in read if place in self.owner}))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", WORKLOADS)
def test_operations_stand_in_the_module_whose_parameters_they_read(name: str, tmp_path: Path) -> None:
    owners: list[Owners] = []

    def below(model: nn.Module) -> Owners:
        owners.append(Owners(model))
        return owners[0]

    operations = [one for one in traced(tmp_path, name, 0, 1, False, below).operations if "detach" not in one.name]
    seen = owners[0].seen[: len(operations)]  # after the step comes the digest of the weights
    assert [one.name for one in operations] == [called for called, _ in seen]
    known = [(one, owned) for one, (_, owned) in zip(operations, seen, strict=True) if len(owned) == 1]
    assert {one.part for one, _ in known} == {"forward", "backward", "optimizer"}
    assert [where(one) for one, owned in known if owned != {one.module}] == []
