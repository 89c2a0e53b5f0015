"""Zhuang's networks have the sizes that their descriptions give, and weights as Keras draws them."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from runner.models.cnn import medium_cnn, small_cnn


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(("batch_norm", "count"), [(False, 15_722), (True, 15_882)])
def test_the_small_one_is_as_large_as_worked_out_by_hand(batch_norm: bool, count: int) -> None:
    convolutions = (3 * 9 + 1) * 16 + (16 * 9 + 1) * 32 + (32 * 9 + 1) * 32
    by_hand = convolutions + (32 + 1) * 32 + (32 + 1) * 10 + batch_norm * 2 * (16 + 32 + 32)
    assert parameters(small_cnn(batch_norm, channels=3, classes=10)) == count == by_hand


@pytest.mark.parametrize(("kernel_size", "count"), [(1, 690_664), (3, 2_087_784), (5, 4_882_024), (7, 9_073_384)])
def test_the_medium_one_is_as_large_as_worked_out_by_hand(kernel_size: int, count: int) -> None:
    widths = [3, 16, 32, 64, 128, 256, 512]
    pairs = sum(wide * out for wide, out in pairwise(widths))
    by_hand = kernel_size**2 * pairs + (1 + 2) * sum(widths[1:]) + (512 + 1) * 1000
    with torch.device("meta"):
        assert parameters(medium_cnn(kernel_size, channels=3, classes=1000)) == count == by_hand


def sides(network: nn.Module, side: int) -> list[int]:
    """The side of an image after each stage."""
    seen: list[int] = []
    for module in network:
        if isinstance(module, nn.Sequential):
            module.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[-1]))
    assert network(torch.randn(2, 1, side, side)).shape == (2, 5)
    return seen


@pytest.mark.parametrize("kernel_size", [1, 3, 5, 7])
def test_only_the_maximum_halves_an_image_whatever_the_kernel(kernel_size: int) -> None:
    assert sides(medium_cnn(kernel_size, channels=1, classes=5), 64) == [32, 16, 8, 4, 2, 1]


def test_the_small_one_takes_digits() -> None:
    assert sides(small_cnn(batch_norm=True, channels=1, classes=5), 8) == [4, 2, 1]


def test_normalisation_is_there_where_it_is_asked_for() -> None:
    for batch_norm in (False, True):
        kinds = [type(module) for module in small_cnn(batch_norm, channels=3, classes=10)[0]]
        norm = [nn.BatchNorm2d] if batch_norm else []
        assert kinds == [nn.Conv2d, *norm, nn.ReLU, nn.MaxPool2d]


def test_weights_are_uniform_within_glorots_bound_and_biases_zero() -> None:
    torch.manual_seed(0)
    network = medium_cnn(3, channels=3, classes=10)
    convolution = network[5][0]
    bound = math.sqrt(6 / ((256 + 512) * 9))
    assert convolution.weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert convolution.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert network[-1].weight.abs().max().item() == pytest.approx(math.sqrt(6 / (512 + 10)), rel=1e-2)
    assert not convolution.bias.any() and not network[-1].bias.any()
