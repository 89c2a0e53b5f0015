"""Narrow residual networks have the size of the papers', and every block begins as an identity."""

import math

import pytest
import torch
from torch import Tensor

from runner.models.resnet_cifar import Block, resnet_cifar


def parameters_by_hand(blocks: int) -> int:
    """Of the network with this many blocks in each stage, for colour images and ten classes."""
    stem = 3 * 16 * 9 + 2 * 16
    first = 2 * blocks * (16 * 16 * 9 + 2 * 16)
    second = 16 * 32 * 9 + (2 * blocks - 1) * 32 * 32 * 9 + 2 * blocks * 2 * 32 + 2 * 16
    third = 32 * 64 * 9 + (2 * blocks - 1) * 64 * 64 * 9 + 2 * blocks * 2 * 64 + 2 * 32
    return stem + first + second + third + 64 * 10 + 10


@pytest.mark.parametrize(("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_is_as_large_as_he_et_al_say_and_as_worked_out_by_hand(depth: int, millions: float) -> None:
    with torch.device("meta"):
        network = resnet_cifar(depth, channels=3, classes=10)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert parameters == parameters_by_hand((depth - 2) // 6)
    assert parameters / 1e6 == pytest.approx(millions, abs=0.05 if depth == 110 else 0.005)


def test_summers_and_dinneens_has_172602_parameters() -> None:
    network = resnet_cifar(14, channels=3, classes=10)
    assert sum(parameter.numel() for parameter in network.parameters()) == 172_602 == parameters_by_hand(2)


@pytest.mark.parametrize(("side", "classes"), [(32, 10), (9, 3)])
def test_gives_a_logit_for_each_class(side: int, classes: int) -> None:
    network, seen = resnet_cifar(14, channels=1, classes=classes), []
    network[-3].register_forward_hook(lambda module, inputs, output: seen.append(tuple(inputs[0].shape)))
    assert network(torch.randn(2, 1, side, side)).shape == (2, classes)
    assert seen == [(2, 64, math.ceil(side / 4), math.ceil(side / 4))]


def test_a_block_begins_as_an_identity() -> None:
    network = resnet_cifar(14, channels=3, classes=10)
    block = next(module for module in network if isinstance(module, Block))
    features = torch.rand(2, 16, 8, 8)
    assert torch.equal(block(features), features)


def test_a_narrowing_block_begins_as_every_second_pixel_and_zeros() -> None:
    block = resnet_cifar(14, channels=3, classes=10)[5].eval()
    features = torch.rand(2, 16, 5, 5)
    narrowed = block(features)
    assert narrowed.shape == (2, 32, 3, 3)
    assert torch.allclose(narrowed[:, :16], features[:, :, ::2, ::2], rtol=1e-4)
    assert not narrowed[:, 16:].any()


def test_convolutions_are_drawn_by_what_goes_out_of_them() -> None:
    torch.manual_seed(0)
    block = resnet_cifar(14, channels=3, classes=10)[7]
    assert block.convolution1.weight.shape == (64, 32, 3, 3)
    assert block.convolution1.weight.std().item() == pytest.approx(math.sqrt(2 / (64 * 9)), rel=0.05)


def weights(seed: int) -> Tensor:
    torch.manual_seed(seed)
    return torch.nn.utils.parameters_to_vector(resnet_cifar(14, channels=3, classes=10).parameters())


def test_is_drawn_by_the_seed_alone() -> None:
    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize("depth", [2, 18, 21])
def test_a_depth_that_is_not_6n_plus_2_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth={depth}: is not 6n"):
        resnet_cifar(depth, channels=3, classes=10)
