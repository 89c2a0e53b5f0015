"""What is known to remove a difference: a table from what was found to settings or code, each row with its source."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NOTES = "PyTorch's notes on reproducibility, docs.pytorch.org/docs/stable/notes/randomness.html"
STRICT = "docstring of torch.use_deterministic_algorithms, torch 2.11 to 2.14"
CODE = "source of torch.nn.functional, torch 2.14"
CUBLAS = "cuBLAS documentation, section Results reproducibility"
RECURRENT = "documentation of torch.nn.LSTM, warning on nondeterminism"
MEASURED = "measured on an NVIDIA H200, torch 2.11, cuDNN 9.19"
OURS = "this runner's own seeds and processes, docs/measuring.md"
TRACES = "how traces are compared, docs/why.md"

Flat = dict[str, Any]  # a cell's settings with dotted keys


@dataclass(frozen=True)
class Row:
    """One line of the table: it holds for findings of `rung` whose operation's name matches, on `device` if given.

    `names` match the whole name without "aten." and overload. Where repeating showed `not_if` the line does not hold;
    `when` looks at the cell's settings.
    """

    names: str
    words: str
    source: str
    change: list[str] = field(default_factory=list)
    rung: str = "operation"
    device: str | None = "cuda"
    not_if: str | None = None
    when: Callable[[Flat], bool] = lambda flat: True


def _flags(deterministic: bool, benchmark: bool | None = None) -> Callable[[Flat], bool]:
    """Whether a cell's convolutions are asked to be deterministic, by flag or strict mode, and benchmark is so."""

    def holds(flat: Flat) -> bool:
        asked = bool(flat.get("cudnn.deterministic") or flat.get("determinism.algorithms"))
        return asked == deterministic and benchmark in (None, flat.get("cudnn.benchmark"))

    return holds


CONVOLUTION = r"(cudnn_|miopen_|_)?(conv|convolution).*"
FULL = ["determinism=full"]
ANY = ".*"

TABLE = [
    # Convolutions: what the two flags are for.
    Row(
        CONVOLUTION,
        "let cuDNN choose among deterministic algorithms only",
        NOTES,
        ["cudnn=deterministic"],
        when=_flags(deterministic=False),
    ),
    Row(
        CONVOLUTION,
        "the same with tuning: often faster, but each process may choose another algorithm",
        MEASURED,
        ["cudnn=deterministic_benchmark"],
        not_if="differs between processes",
        when=_flags(deterministic=False),
    ),
    Row(
        CONVOLUTION,
        "benchmark off: tuning may choose another algorithm in another process",
        NOTES,
        ["cudnn=deterministic"],
        not_if="differs when repeated",
        when=_flags(deterministic=True, benchmark=True),
    ),
    Row(
        CONVOLUTION,
        "benchmark off: tuning may choose another algorithm in another process, and in bf16 that can be all",
        MEASURED,
        ["cudnn=default"],
        not_if="differs when repeated",
        when=_flags(deterministic=False, benchmark=True),
    ),
    # Up-sampling: out of the cuDNN flags' reach.
    Row(
        r"upsample_(bilinear2d|trilinear3d)_backward",
        "in strict mode F.interpolate takes another path, whose backward adds in a fixed order (not with antialias)",
        CODE,
        FULL,
    ),
    Row(
        r"upsample_bilinear2d_backward",
        "learned up-sampling by transposed convolution, which the cuDNN flags reach",
        MEASURED,
        ["model.upsampling=transposed"],
        when=lambda flat: flat.get("model.upsampling") == "bilinear",
    ),
    Row(
        r"_?upsample_(linear1d|bicubic2d|.*_aa)_backward",
        "no setting reaches it, strict mode refuses it: interpolate with mode=nearest, or bilinear without antialias",
        STRICT,
    ),
    # The loss over pixels.
    Row(
        r"nll_loss2d_forward",
        "only the printed loss differs, its gradient does not; in strict mode this runner averages it in a fixed order",
        MEASURED,
        FULL,
    ),
    # Those for which strict mode has another implementation.
    Row(
        r"(_unsafe_)?(index_add|index_copy|index_put|scatter|scatter_add|scatter_reduce)_?|_index_put_impl_?"
        r"|(gather|index_select|repeat_interleave|replication_pad\dd)_backward|_sparse_mm",
        "it may add or write in any order; strict mode has a deterministic implementation",
        STRICT,
        FULL,
        device=None,
    ),
    Row(
        r"max_pool3d_with_indices_backward|embedding_dense_backward|cumsum",
        "it may add in any order; strict mode has a deterministic implementation in torch 2.14, older ones may not",
        STRICT,
        FULL,
    ),
    Row(
        r"_?scaled_dot_product_.*_backward|_(flash|efficient)_attention_backward",
        "the backward pass of fused attention is deterministic in strict mode (not with warn_only)",
        "source of PyTorch's attention on CUDA",
        FULL,
    ),
    # Those that strict mode refuses: other code is needed.
    Row(
        r"_?adaptive_(avg|max)_pool[23]d_backward|avg_pool3d_backward|fractional_max_pool[23]d_backward",
        "no setting reaches it, strict mode refuses it: pool with AvgPool2d or MaxPool2d, or take the mean over all",
        STRICT,
    ),
    Row(
        r"reflection_pad\dd_backward|grid_sampler_[23]d_backward|max_unpool\dd.*|_?embedding_bag.*|put_?",
        "no setting reaches it, strict mode refuses it: build it from operations that have a fixed order "
        "(padding from slices and cat, sampling from index and multiplication, a bag from embedding and sum)",
        STRICT,
    ),
    Row(
        r"_?ctc_loss_backward",
        "PyTorch's own has no deterministic implementation, cuDNN's has: it takes int32 targets on the CPU and blank 0",
        "documentation of torch.nn.CTCLoss",
    ),
    Row(
        r"histc|bincount|median|kthvalue",
        "no setting reaches it, strict mode refuses it: count or sort on the CPU",
        STRICT,
    ),
    # Matrices and recurrent networks.
    Row(
        r"_?(mm|addmm|bmm|baddbmm|addmv|mv|dot|linear|matmul|addbmm|scaled_mm|addmm_activation)_?",
        "a fixed workspace for cuBLAS: without it several streams may choose other algorithms",
        CUBLAS,
        ['determinism.workspace=":4096:8"'],
    ),
    Row(
        r"_?(cudnn|miopen|thnn_fused)_?(rnn|lstm|gru).*",
        "a small fixed workspace for cuBLAS",
        RECURRENT,
        ['determinism.workspace=":16:8"'],
    ),
    # On a CPU.
    Row(
        ANY,
        "one thread: what several threads add may come together in another order",
        OURS,
        ["threads=1"],
        device="cpu",
    ),
    Row(
        ANY,
        "processes with one hash seed and one layout of memory: if this helps, fix PYTHONHASHSEED",
        OURS,
        ["isolation=forkserver"],
        device=None,
        not_if="differs when repeated",
        when=lambda flat: flat.get("isolation") == "spawn",
    ),
    # Above operations.
    Row(ANY, "the same seeds in every trial", OURS, ["seeds=fixed"], "start", None),
    Row(
        ANY,
        "the seeds are the same, so something draws from elsewhere: numpy.random.default_rng() without a seed, "
        "os.urandom, the time, the order of a set; let it draw from torch, NumPy's or Python's global generator",
        NOTES,
        [],
        "start",
        None,
        when=lambda flat: not flat.get("seeds.vary"),
    ),
    Row(ANY, "the same order and augmentation in every trial", OURS, ["seeds=fixed"], "data", None),
    Row(
        ANY,
        "load in the training process: a worker may be seeded by itself, or race with others",
        NOTES,
        ["dataset.workers=0"],
        "data",
        None,
    ),
    Row(
        ANY,
        "the data set or its augmentation draws from a generator that is not seeded, or reads files in an order that "
        "is not fixed: draw from torch's, NumPy's or Python's global generator, sort what is listed",
        NOTES,
        [],
        "data",
        None,
        when=lambda flat: not flat.get("seeds.vary"),
    ),
    Row(ANY, "the same seed of dropout in every trial", OURS, ["seeds=fixed"], "random", None),
    Row(
        ANY,
        "the generator was seeded, or drawn from, by something that differs between trials (torch.seed(), the time, "
        "another thread): give this draw a torch.Generator with a fixed seed",
        NOTES,
        [],
        "random",
        None,
        when=lambda flat: not flat.get("seeds.vary"),
    ),
    Row(
        ANY,
        "a Python number in the model, the loss or the schedule: from random, NumPy, the time, the order of a set",
        TRACES,
        [],
        "scalar",
        None,
    ),
    Row(
        ANY,
        "something other than an ATen operation changed this memory or made it: NumPy, a kernel of one's own, another "
        "stream or thread without synchronisation",
        TRACES,
        [],
        "outside",
        None,
    ),
    Row(
        ANY,
        "strict mode fills new memory, so that what nobody wrote is NaN and shows; write before you read (torch.zeros)",
        "documentation of torch.utils.deterministic.fill_uninitialized_memory",
        FULL,
        "uninitialised",
        None,
    ),
    Row(
        ANY,
        "the model's code takes another path: by a random number, the time, or a value that differs before",
        TRACES,
        [],
        "path",
        None,
    ),
]
