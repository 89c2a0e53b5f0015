"""The groups of conf/ as frozen dataclasses: one class a group.

The families of models and of data sets stand in runner/schema_models.py and runner/schema_datasets.py.

Bounds stand in a field's metadata: `one_of`, `least`, `below`. A value of None means that the machine or the data
decide. Values stand in conf/; a default stands here only where a user's own file may leave the key out.
"""

from dataclasses import dataclass, field
from typing import Any

from runner.seeds import STREAMS


def allowed(*choices: Any) -> dict[str, Any]:
    """Metadata of a field that takes one of these values."""
    return {"one_of": choices}


LEAST_1 = {"least": 1}
LEAST_0 = {"least": 0}
# What a process makes a list or an array of, or starts: more would end it for want of memory, long after it was asked.
COUNT = {"least": 1, "below": 10**9}
SIDE = {"least": 1, "below": 10**6}  # of an image in pixels, of a piece in steps, in channels or in classes


@dataclass(frozen=True, kw_only=True)
class Cudnn:
    """The switches of torch.backends.cudnn; the first two are the mode."""

    deterministic: bool
    benchmark: bool
    enabled: bool = True
    benchmark_limit: int = field(default=10, metadata=LEAST_0)


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What arithmetic is done in: PyTorch's own switches, IEEE fp32, TF32, or autocast to bf16 or fp16."""

    name: str = field(metadata=allowed("default", "fp32", "tf32", "bf16", "fp16"))


@dataclass(frozen=True, kw_only=True)
class Determinism:
    """What is asked of PyTorch beyond the two flags.

    `workspace` is CUBLAS_WORKSPACE_CONFIG, None leaves the variable as it is; `fill_memory` is
    torch.utils.deterministic.fill_uninitialized_memory, which acts under strict algorithms only.
    """

    algorithms: bool
    warn_only: bool
    fill_memory: bool
    workspace: str | None = field(metadata=allowed(":4096:8", ":16:8"))


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The base seed, and the streams of randomness that change from trial to trial."""

    base: int = field(metadata=LEAST_0)
    vary: list[str] = field(metadata=allowed(*STREAMS))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What looks into the first steps of a trial, at the price of its speed figures.

    With `modules` and `ops` the first `steps` steps are traced, with `kernels` the last of them is profiled. `repeat`
    does every operation twice.
    """

    name: str = field(metadata=allowed("none", "modules", "ops", "kernels"))
    steps: int = field(metadata=SIDE)
    repeat: bool


@dataclass(frozen=True, kw_only=True)
class Train:
    """How long and how. Of `steps` and `epochs` one is given or both are None (the machine decides).

    The learning rate rises from 0 over the first `warmup_steps`; after them it is what `schedule`, a function of the
    whole training, makes of it: "step" multiplies it by `decay_factor` every `decay_every` steps, "one_cycle" is
    Smith's (2018) as PyTorch does it, up from a 25th and down to almost nothing. All gradients together are scaled to
    a length of at most `clip_norm`. Parameters of one dimension (biases, scales of normalisations) learn at
    `bias_factor` times this rate. `momentum` and `nesterov` are of sgd. `evaluate_every` counts steps; None evaluates
    at the end only.

    Before step `poke_step` of each trial one weight of the first layer, another in each trial, is moved to a
    neighbouring number (`poke` "ulp") or multiplied by `poke_factor` ("scale").

    `keep_logits` keeps what the last evaluation gives for every test item and class, up to 4 MiB a trial.
    """

    steps: int | None = field(metadata=COUNT)
    epochs: int | None = field(metadata=COUNT)
    batch_size: int | None = field(metadata=COUNT)
    optimizer: str = field(metadata=allowed("adamw", "adam", "sgd"))
    learning_rate: float = field(metadata={"least": 0.0})
    momentum: float = field(metadata={"least": 0.0, "below": 1.0})
    nesterov: bool
    weight_decay: float = field(metadata={"least": 0.0})
    bias_factor: float = field(metadata={"least": 0.0})
    schedule: str = field(metadata=allowed("constant", "cosine", "linear", "step", "one_cycle"))
    decay_every: int | None = field(metadata=LEAST_1)
    decay_factor: float = field(metadata={"least": 0.0})
    warmup_steps: int = field(metadata=LEAST_0)
    clip_norm: float | None = field(metadata={"least": 0.0})
    poke: str = field(metadata=allowed("none", "ulp", "scale"))
    poke_step: int = field(metadata=LEAST_1)
    poke_factor: float
    evaluate_every: int | None = field(metadata=LEAST_1)
    keep_logits: bool
    compile: str = field(metadata=allowed("off", "default", "max-autotune"))


@dataclass(frozen=True, kw_only=True)
class Calling:
    """With phase=calls: how many calls a loop has, and what a call is.

    With `backward` a call works out the gradients of parameters and inputs too. `float64` compares the results with
    those of the module in float64 on the CPU; `kernels` profiles one more call when everything else is measured.
    """

    times: int = field(metadata=COUNT)
    backward: bool
    float64: bool
    kernels: bool


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Where the study is shown besides its folder: MLflow at `uri`, or nowhere.

    `experiment` is MLflow's; None names it after model and data set. With `required` a store that cannot be used
    refuses the study before its first trial; without, a line says so.
    """

    name: str = field(metadata=allowed("local", "server", "off"))
    uri: str | None
    experiment: str | None
    required: bool


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which trial of its cell a job is; the sweeper sets it."""

    number: int = field(metadata=LEAST_0)
    position: int = field(metadata=LEAST_0)
