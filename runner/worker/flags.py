"""The switches under study: set first, read back before and after training. Nothing is inferred from settings."""

import os
from typing import Any

import torch


def apply(config: dict[str, Any]) -> dict[str, Any]:
    """Set every switch that a cell's settings ask for. Returns what was asked, in the words of `read`.

    `precision=default` asks for nothing: PyTorch's own defaults stay (TF32 in convolutions, not in matrix products).
    """
    cudnn, determinism = config["cudnn"], config["determinism"]
    asked = {key: cudnn[key] for key in ("deterministic", "benchmark", "enabled", "benchmark_limit")}
    for key, value in asked.items():
        setattr(torch.backends.cudnn, key, value)
    torch.use_deterministic_algorithms(determinism["algorithms"], warn_only=determinism["warn_only"])
    torch.utils.deterministic.fill_uninitialized_memory = determinism["fill_memory"]  # type: ignore[attr-defined]
    asked |= {key: determinism[key] for key in ("algorithms", "fill_memory")}
    if "threads" in config:  # a script as it is has its own number
        torch.set_num_threads(config["threads"])
        asked["threads"] = config["threads"]
    if determinism["algorithms"]:
        asked["warn_only"] = determinism["warn_only"]
    if determinism["workspace"] is not None:
        asked["workspace"] = determinism["workspace"]
    return asked | _apply_precision(config["precision"]["name"])


def _apply_precision(name: str) -> dict[str, Any]:
    """The older allow_tf32 switches: setting the newer fp32_precision ones makes models that read these fail."""
    tf32 = {"default": None, "fp32": False, "tf32": True, "bf16": None, "fp16": None}[name]
    if tf32 is None:
        return {}
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return {"conv_tf32": tf32, "rnn_tf32": tf32, "matmul_tf32": tf32}


def read() -> dict[str, Any]:
    """The switches as they are now."""
    backend = torch.backends.cudnn
    return {
        "deterministic": backend.deterministic,
        "benchmark": backend.benchmark,
        "enabled": backend.enabled,
        "benchmark_limit": backend.benchmark_limit,
        "algorithms": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "fill_memory": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "threads": torch.get_num_threads(),
        "conv_tf32": backend.conv.fp32_precision == "tf32",  # type: ignore[attr-defined]
        "rnn_tf32": backend.rnn.fp32_precision == "tf32",  # type: ignore[attr-defined]
        "matmul_tf32": torch.backends.cuda.matmul.fp32_precision == "tf32",
    }


def precisions(seen: dict[str, Any]) -> dict[str, str]:
    """How fp32 arithmetic was done, for the environment: figures under TF32 and IEEE fp32 are never pooled."""
    return {f"{kind}_precision": "tf32" if seen[f"{kind}_tf32"] else "ieee" for kind in ("conv", "rnn", "matmul")}
