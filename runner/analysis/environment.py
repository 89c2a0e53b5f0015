"""Environments: what must be equal for the figures of two trials to be pooled."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from runner.jsonfile import canonical
from runner.record import Plain, Record

# Hash seed and interpreter are left out: they differ from process to process by nature.
ENVIRONMENT = (
    "device",
    "gpu_name",
    "driver",
    "cuda",
    "cudnn",
    "hip",
    "torch",
    "torchvision",
    "python",
    "platform",
    "cpu",
    "cpu_switches",
    "threads",
    "blas",
    "conv_precision",
    "rnn_precision",
    "matmul_precision",
    "workspace",
    "launch_blocking",
    "exclusive",
    "code",
)
# What names an instance: listed, never compared here; a pair is of one host and one GPU.
INSTANCE = ("host", "gpu_uuid", "git_revision")


@dataclass(frozen=True)
class Environment:
    """One environment: the value of each key of ENVIRONMENT (None where a record lacks it)."""

    values: dict[str, Any]

    @classmethod
    def of(cls, record: Record) -> "Environment":
        """The environment in which a trial took place."""
        return _environment(*map(record.environment.get, ENVIRONMENT))

    @cached_property
    def id(self) -> str:
        """A short stable name: the digest of the values' canonical JSON."""
        return hashlib.sha256(canonical(self.values).encode()).hexdigest()[:8]

    @property
    def cuda(self) -> bool:
        """Whether the trials used CUDA, without which the flags cannot act."""
        return bool(self.values["device"] == "cuda")

    @property
    def rocm(self) -> bool:
        """Whether this is a ROCm build, where the flags steer MIOpen and mean other things."""
        return self.values["hip"] is not None


@lru_cache(typed=True)
def _environment(*values: Plain) -> Environment:
    """Kept: every trial of a study has an environment, and as a rule they are all the same one."""
    return Environment(dict(zip(ENVIRONMENT, values, strict=True)))


def environments_of(records: Iterable[Record]) -> dict[str, Environment]:
    """The environments of a study by id, in order of first appearance.

    Only trials that trained define one: a trial that died early may not know where it was.
    """
    trained = (Environment.of(record) for record in records if record.outcome in ("finished", "diverged"))
    return {environment.id: environment for environment in trained}


def differing(environments: list[Environment]) -> list[str]:
    """The keys whose value is not the same in all environments."""
    return [key for key in ENVIRONMENT if len({canonical(one.values[key]) for one in environments}) > 1]
