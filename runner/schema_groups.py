"""The groups of conf/ as frozen dataclasses: one class a group, or one a family where a group has families.

The families of models stand in runner/schema_models.py.

Bounds stand in a field's metadata: `one_of`, `least`, `below`. A value of None means that the machine or the data
decide. Values stand in conf/; a default stands here only where a user's own file may leave the key out.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from runner.dataset_files import TORCHVISION_FILES
from runner.seeds import STREAMS


def allowed(*choices: Any) -> dict[str, Any]:
    """Metadata of a field that takes one of these values."""
    return {"one_of": choices}


LEAST_1 = {"least": 1}
LEAST_0 = {"least": 0}

# What the data look like to a model: see runner/data/__init__.py for shapes.
VIEWS = ("image", "mask", "sequence", "next", "forecast")
CUSTOM_VIEW = "custom"  # of a user's own data alone: their form is between these and the user's own model


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
    steps: int = field(metadata=LEAST_1)
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

    steps: int | None = field(metadata=LEAST_1)
    epochs: int | None = field(metadata=LEAST_1)
    batch_size: int | None = field(metadata=LEAST_1)
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

    times: int = field(metadata=LEAST_1)
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


@dataclass(frozen=True, kw_only=True)
class _Dataset:
    """What every data set has.

    `view` None takes the one that the model needs. `resident` None keeps data of at most 1 GiB on the training device
    and streams others through a DataLoader with `workers` processes.
    """

    VIEWS: ClassVar[tuple[str, ...]] = VIEWS

    name: str
    view: str | None = field(default=None, metadata=allowed(*VIEWS, CUSTOM_VIEW))
    resident: bool | None = None
    workers: int = field(default=0, metadata=LEAST_0)


@dataclass(frozen=True, kw_only=True)
class Digits(_Dataset):
    """scikit-learn's 1,797 handwritten digits, 8x8; `size` enlarges images and masks to size x size pixels."""

    VIEWS: ClassVar[tuple[str, ...]] = ("image", "mask", "sequence")

    size: int | None = field(metadata={"least": 8})


@dataclass(frozen=True, kw_only=True)
class Synthetic(_Dataset):
    """Random data of any shape, the same in every process.

    Images and masks are `channels` x `size` x `size`, or take each of `sizes` in turn, a batch each; sequences have
    `length` (or each of `lengths`) steps of `channels` features, characters come from `classes` symbols.
    """

    items: int = field(metadata=LEAST_1)
    test_items: int = field(metadata=LEAST_1)
    channels: int = field(metadata=LEAST_1)
    classes: int = field(metadata={"least": 2})
    size: int = field(metadata=LEAST_1)
    sizes: list[int] = field(metadata=LEAST_1)
    length: int = field(metadata=LEAST_1)
    lengths: list[int] = field(metadata=LEAST_1)


@dataclass(frozen=True, kw_only=True)
class Torchvision(_Dataset):
    """One of torchvision's data sets under `root`; `download` fetches it when it is not there.

    `augment` pads by 4 pixels, crops back at random and flips at random.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("image",)

    root: str
    download: bool
    augment: bool


@dataclass(frozen=True, kw_only=True)
class ImageFolder(_Dataset):
    """A folder train/CLASS/*.png|jpg and test/CLASS/*, or CLASS/* alone: then every fifth image is for testing.

    `size` resizes to size x size pixels; None needs images of one size.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("image",)

    root: str
    size: int | None = field(metadata=LEAST_1)
    augment: bool


@dataclass(frozen=True, kw_only=True)
class MaskFolder(_Dataset):
    """A folder with images/NAME and masks/NAME of equal size; every fifth pair is for testing.

    Distinct grey values in the masks are the classes, in rising order. `size` cuts every image into squares of
    size x size pixels; None takes images whole.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("mask",)

    root: str
    size: int | None = field(metadata=LEAST_1)
    augment: bool


@dataclass(frozen=True, kw_only=True)
class Text(_Dataset):
    """The characters of one text file in pieces of `length`; the last tenth is for testing."""

    VIEWS: ClassVar[tuple[str, ...]] = ("next",)

    path: str
    length: int = field(metadata=LEAST_1)


@dataclass(frozen=True, kw_only=True)
class NumberSeries(_Dataset):
    """The numeric columns of a CSV file, standardised; windows of `length` rows predict the next row.

    The last fifth of the rows is for testing. `columns` selects columns by name; empty takes every numeric one.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("forecast",)

    path: str
    columns: list[str]
    length: int = field(metadata=LEAST_1)


@dataclass(frozen=True, kw_only=True)
class CustomDataset(_Dataset):
    """A user's own: `_target_` is called with `args` and returns the training and the test set, map-style.

    Items are (input, target) as `view` says; `classes` is the number of classes, symbols or predicted values, which
    the view custom does without.
    """

    VIEWS: ClassVar[tuple[str, ...]] = (*VIEWS, CUSTOM_VIEW)

    _target_: str
    args: dict[str, Any] = field(default_factory=dict)
    classes: int | None = field(default=None, metadata=LEAST_1)


DATASETS: dict[str, Any] = {
    "digits": Digits,
    "synthetic": Synthetic,
    **dict.fromkeys(TORCHVISION_FILES, Torchvision),
    "image_folder": ImageFolder,
    "mask_folder": MaskFolder,
    "text": Text,
    "series": NumberSeries,
    "custom": CustomDataset,
}
