"""Seed the global generators for one stream of randomness; order and augmentation have generators of their own."""

import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed PyTorch (CPU and devices), NumPy and random."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
