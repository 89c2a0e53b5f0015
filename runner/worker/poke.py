"""Change one weight of a model as little as one likes: what becomes of it shows how unstable the training is."""

import math
from typing import Literal

import torch
from torch import nn


@torch.no_grad()
def poke(model: nn.Module, kind: Literal["ulp", "scale"], factor: float, number: int) -> None:
    """Change one weight of the first parameter with several dimensions, in a network for images its first convolution.

    The weight is drawn by `number` alone, and no other generator notices. "ulp" moves it to the next number above or
    below, as Summers and Dinneen do (ICML 2021), "scale" multiplies it by `factor`, as Jordan does (arXiv 2304.01910).
    """
    draw = torch.Generator().manual_seed(number)
    weights = next(parameter for parameter in model.parameters() if parameter.dim() > 1)
    place = tuple(int(torch.randint(size, (), generator=draw)) for size in weights.shape)
    up = bool(torch.randint(2, (), generator=draw))
    toward = torch.tensor(math.inf if up else -math.inf).to(weights)
    weights[place] = weights[place] * factor if kind == "scale" else weights[place].nextafter(toward)
