"""What the flags are where there is no cuDNN: on AMD's cards and on Apple's machines."""

from typing import Any

ROCM = (
    "this is a ROCm build: the flags steer MIOpen and mean other things than with cuDNN; what MIOpen has tuned stays "
    "on disk, so that a first trial may tune (cold) and later ones find it done (warm)"
)
APPLE = "this is macOS: there is no cuDNN, so the flags reach neither the CPU nor the GPU (MPS), and trials use the CPU"


def platform_words(summary: dict[str, Any]) -> list[str]:
    """A line for each such platform among the environments of a study; none on others."""
    environments = summary["environments"]
    found = [ROCM] if any(one.get("hip") for one in environments) else []
    apple = any(str(one.get("platform")).startswith(("macOS", "Darwin")) for one in environments)
    return [*found, APPLE] if apple else found
