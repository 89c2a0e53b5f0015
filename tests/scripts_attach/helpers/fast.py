"""What somebody once found to be fast."""

import torch


def make_it_fast() -> None:
    """Deep in a helper, where nobody looks."""
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
