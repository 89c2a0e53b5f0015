"""A script with everything that the doctor knows."""

import os

import numpy as np
import torch
from helpers.fast import make_it_fast
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"


class Noisy(Dataset[Tensor]):
    """Every worker gets a copy of the same generator."""

    def __init__(self) -> None:
        self.dice = np.random.default_rng(0)

    def __len__(self) -> int:
        return 80

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.dice.random(4, dtype=np.float32))


def same_for_all(worker: int) -> None:
    """As many write it."""
    np.random.seed(0)


if __name__ == "__main__":
    make_it_fast()
    model = nn.Linear(4, 2)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with torch.backends.cudnn.flags(enabled=False):
        pass
    for _ in range(4):
        for batch in DataLoader(Noisy(), batch_size=4, num_workers=2, worker_init_fn=same_for_all):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
