"""What is known to remove a difference: a table from what was found to settings or code, each with its source."""

from runner.analysis.remedy import Remedy, attached, flags_are, seeds_are_fixed

NOTES = "PyTorch's notes on reproducibility, docs.pytorch.org/docs/stable/notes/randomness.html"
STRICT = "docstring of torch.use_deterministic_algorithms, torch 2.11 to 2.14"
CODE = "source of torch.nn.functional, torch 2.14"
VISION = "source of torchvision.ops and of its registrations for autograd, torchvision 0.29"
CUBLAS = "cuBLAS documentation, section Results reproducibility"
RECURRENT = "documentation of torch.nn.LSTM, warning on nondeterminism"
MEASURED = "measured on an NVIDIA H200, torch 2.11, cuDNN 9.19"
OURS = "this runner's own seeds and processes, docs/measuring.md"
TRACES = "how traces are compared, docs/why.md"
CONVOLUTION = r"(cudnn_|miopen_|_)?(conv|convolution).*"
FULL = "determinism=full"

TABLE = [
    # Convolutions: what the two flags are for.
    Remedy(
        names=CONVOLUTION,
        when=flags_are(deterministic=False),
        words="let cuDNN choose among deterministic algorithms only",
        change="cudnn=deterministic",
        source=NOTES,
    ),
    Remedy(
        names=CONVOLUTION,
        not_if="differs between processes",
        when=flags_are(deterministic=False),
        words="the same with tuning: often faster, but each process may choose another algorithm",
        change="cudnn=deterministic_benchmark",
        source=MEASURED,
    ),
    Remedy(
        names=CONVOLUTION,
        not_if="differs when repeated",
        when=flags_are(deterministic=True, benchmark=True),
        words="benchmark off: tuning may choose another algorithm in another process",
        change="cudnn=deterministic",
        source=NOTES,
    ),
    Remedy(
        names=CONVOLUTION,
        not_if="differs when repeated",
        when=flags_are(deterministic=False, benchmark=True),
        words="benchmark off: tuning may choose another algorithm in another process, and in bf16 that can be all",
        change="cudnn=default",
        source=MEASURED,
    ),
    # Up-sampling: out of the cuDNN flags' reach.
    Remedy(
        names=r"upsample_(bilinear2d|trilinear3d)_backward",
        words=(
            "in strict mode F.interpolate takes another path, whose backward adds in a fixed order (not with antialias)"
        ),
        change=FULL,
        source=CODE,
    ),
    Remedy(
        names=r"upsample_bilinear2d_backward",
        when=lambda flat: flat.get("model.upsampling") == "bilinear",
        words="learned up-sampling by transposed convolution, which the cuDNN flags reach",
        change="model.upsampling=transposed",
        source=MEASURED,
    ),
    Remedy(
        names=r"_?upsample_(linear1d|bicubic2d|.*_aa)_backward",
        words=(
            "no setting reaches it, strict mode refuses it: interpolate with mode=nearest, or bilinear without "
            "antialias"
        ),
        source=STRICT,
    ),
    # The loss over pixels.
    Remedy(
        names=r"nll_loss2d_forward",
        words=(
            "only the printed loss differs, its gradient does not; in strict mode this runner averages it in a fixed "
            "order"
        ),
        change=FULL,
        source=MEASURED,
    ),
    # Those for which strict mode has another implementation.
    Remedy(
        device=None,
        names=(
            r"(_unsafe_)?(index_add|index_copy|index_put|scatter|scatter_add|scatter_reduce)_?|_index_put_impl_?"
            r"|(gather|index_select|repeat_interleave|replication_pad\dd)_backward|_sparse_mm"
        ),
        words="it may add or write in any order; strict mode has a deterministic implementation",
        change=FULL,
        source=STRICT,
    ),
    Remedy(
        names=r"max_pool3d_with_indices_backward|embedding_dense_backward|cumsum",
        words=(
            "it may add in any order; strict mode has a deterministic implementation in torch 2.14, older ones may not"
        ),
        change=FULL,
        source=STRICT,
    ),
    Remedy(
        names=r"_?scaled_dot_product_.*_backward|_(flash|efficient)_attention_backward",
        words="the backward pass of fused attention is deterministic in strict mode (not with warn_only)",
        change=FULL,
        source="source of PyTorch's attention on CUDA",
    ),
    # Those that strict mode refuses: other code is needed.
    Remedy(
        names=r"_?adaptive_(avg|max)_pool[23]d_backward|avg_pool3d_backward|fractional_max_pool[23]d_backward",
        words=(
            "no setting reaches it, strict mode refuses it: pool with AvgPool2d or MaxPool2d, or take the mean over all"
        ),
        source=STRICT,
    ),
    Remedy(
        names=r"reflection_pad\dd_backward|grid_sampler_[23]d_backward|max_unpool\dd.*|_?embedding_bag.*|put_?",
        words=(
            "no setting reaches it, strict mode refuses it: build it from operations that have a fixed order (padding"
            " from slices and cat, sampling from index and multiplication, a bag from embedding and sum)"
        ),
        source=STRICT,
    ),
    Remedy(
        names=r"_?ctc_loss_backward",
        words=(
            "PyTorch's own has no deterministic implementation, cuDNN's has: it takes int32 targets on the CPU and "
            "blank 0"
        ),
        source="documentation of torch.nn.CTCLoss",
    ),
    Remedy(
        names=r"histc|bincount|median|kthvalue",
        words="no setting reaches it, strict mode refuses it: count or sort on the CPU",
        source=STRICT,
    ),
    # torchvision's own, which are none of cuDNN's.
    Remedy(
        names=r"_roi_align_backward",
        words=(
            "regions that overlap are added up in any order, whatever the cuDNN flags; in strict mode torchvision makes"
            " roi_align of other operations, compiled, whose backward pass has a fixed order and takes more memory"
        ),
        change=FULL,
        source=VISION,
    ),
    Remedy(
        names=r"_(roi_pool|ps_roi_align|ps_roi_pool|deform_conv2d)_backward",
        words="no setting reaches it, strict mode refuses it: of torchvision's operations on regions roi_align alone",
        source=VISION,
    ),
    # Matrices and recurrent networks.
    Remedy(
        names=r"_?(mm|addmm|bmm|baddbmm|addmv|mv|dot|linear|matmul|addbmm|scaled_mm|addmm_activation)_?",
        words="a fixed workspace for cuBLAS: without it several streams may choose other algorithms",
        change='determinism.workspace=":4096:8"',
        source=CUBLAS,
    ),
    Remedy(
        names=r"_?(cudnn|miopen|thnn_fused)_?(rnn|lstm|gru).*",
        words="a small fixed workspace for cuBLAS",
        change='determinism.workspace=":16:8"',
        source=RECURRENT,
    ),
    # On a CPU.
    Remedy(
        device="cpu",
        words="one thread: what several threads add may come together in another order",
        change="threads=1",
        source=TRACES,
    ),
    Remedy(
        device=None,
        not_if="differs when repeated",
        when=lambda flat: flat.get("isolation") == "spawn",
        words="processes with one hash seed and one layout of memory: if this helps, fix PYTHONHASHSEED",
        change="isolation=forkserver",
        source=OURS,
    ),
    # Above operations.
    Remedy(
        rung="start",
        device=None,
        words="the same seeds in every trial",
        change="seeds=fixed",
        source=OURS,
    ),
    Remedy(
        rung="start",
        device=None,
        when=attached,
        words=(
            "the script's own seed, for the runner sets none there: torch.manual_seed(0) before the first weights are "
            "drawn; the report's section Doctor names the line of a seed that is missing or comes late"
        ),
        source=NOTES,
    ),
    Remedy(
        rung="start",
        device=None,
        when=lambda flat: seeds_are_fixed(flat) and not attached(flat),
        words=(
            "the seeds are the same, so something draws from elsewhere: numpy.random.default_rng() without a seed, "
            "os.urandom, the time, the order of a set; let it draw from torch, NumPy's or Python's global generator"
        ),
        source=NOTES,
    ),
    Remedy(
        rung="data",
        device=None,
        words="the same order and augmentation in every trial",
        change="seeds=fixed",
        source=OURS,
    ),
    Remedy(
        rung="data",
        device=None,
        words="load in the training process: a worker may be seeded by itself, or race with others",
        change="dataset.workers=0",
        source=NOTES,
    ),
    Remedy(
        rung="data",
        device=None,
        when=seeds_are_fixed,
        words=(
            "the data set or its augmentation draws from a generator that is not seeded, or reads files in an order "
            "that is not fixed: draw from torch's, NumPy's or Python's global generator, sort what is listed"
        ),
        source=NOTES,
    ),
    Remedy(
        rung="random",
        device=None,
        words="the same seed of dropout in every trial",
        change="seeds=fixed",
        source=OURS,
    ),
    Remedy(
        rung="random",
        device=None,
        when=seeds_are_fixed,
        words=(
            "the generator was seeded, or drawn from, by something that differs between trials (torch.seed(), the "
            "time, another thread): give this draw a torch.Generator with a fixed seed"
        ),
        source=NOTES,
    ),
    Remedy(
        rung="scalar",
        device=None,
        words=(
            "a Python number that this line computes or is given: from os.urandom, random, NumPy, the time, id() or "
            "hash(), the order of a set"
        ),
        source=TRACES,
    ),
    Remedy(
        rung="outside",
        device=None,
        words=(
            "what made or changed this memory: __init__, for a buffer or attribute that is in no state_dict; NumPy or "
            "os.urandom; a kernel of one's own; another stream or thread without synchronisation"
        ),
        source=TRACES,
    ),
    Remedy(
        rung="uninitialised",
        device=None,
        words="the tensor that torch.empty or the like made: write before you read, or make it by torch.zeros",
        source=TRACES,
    ),
    Remedy(
        rung="uninitialised",
        device=None,
        words="to diagnose, not to repair: strict mode fills new memory, so that what nobody wrote shows as NaN",
        change=FULL,
        source="documentation of torch.utils.deterministic.fill_uninitialized_memory",
    ),
    Remedy(
        rung="path",
        device=None,
        words="the model's code takes another path: by a random number, the time, or a value that differs before",
        source=TRACES,
    ),
]
