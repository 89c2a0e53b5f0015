"""The four modes: a (deterministic, benchmark) pair and its name, which is derived and never stored."""

from typing import Any

MODES = {
    (False, False): "default",
    (False, True): "benchmark",
    (True, False): "deterministic",
    (True, True): "deterministic_benchmark",
}


def mode_name(cudnn: dict[str, Any]) -> str:
    """The mode's name from a cell's `cudnn` settings."""
    return MODES[bool(cudnn["deterministic"]), bool(cudnn["benchmark"])]


def mode_text(cudnn: dict[str, Any]) -> str:
    """The name with its pair, as people see it everywhere: "default (F,F)"."""
    pair = ",".join("T" if cudnn[flag] else "F" for flag in ("deterministic", "benchmark"))
    return f"{mode_name(cudnn)} ({pair})"
