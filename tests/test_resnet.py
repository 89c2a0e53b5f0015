"""Residual networks agree with torchvision's and take small images of any number of channels."""

import math

import pytest
import torch
import torchvision

from runner.models.resnet import BLOCKS, resnet


@pytest.mark.parametrize(
    ("depth", "parameters"), [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032), (101, 44_549_160)]
)
def test_has_as_many_parameters_as_published(depth: int, parameters: int) -> None:
    with torch.device("meta"):
        network = resnet(depth, cifar_stem=False, channels=3, classes=1000)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_equals_torchvision_under_the_same_seed() -> None:
    torch.manual_seed(0)
    ours = resnet(18, cifar_stem=False, channels=3, classes=5)
    torch.manual_seed(0)
    theirs = torchvision.models.resnet18(num_classes=5)
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(ours(images), theirs(images))


@pytest.mark.parametrize(("cifar_stem", "side"), [(True, 8), (False, 2)])
def test_only_the_cifar_stem_keeps_the_resolution(cifar_stem: bool, side: int) -> None:
    network = resnet(10, cifar_stem, channels=1, classes=10)
    sides = []
    network.layer1.register_forward_hook(lambda module, inputs, output: sides.append(output.shape[-1]))
    assert network(torch.randn(2, 1, 8, 8)).shape == (2, 10)
    assert sides == [side]


def test_the_stem_is_drawn_as_torchvision_draws_convolutions() -> None:
    stem = resnet(10, cifar_stem=True, channels=16, classes=2).conv1.weight
    assert stem.shape == (64, 16, 3, 3)
    assert stem.std().item() == pytest.approx(math.sqrt(2 / (64 * 3 * 3)), rel=0.1)


def test_gradient_reaches_every_parameter() -> None:
    network = resnet(10, cifar_stem=True, channels=2, classes=3)
    network(torch.randn(4, 2, 8, 8)).square().sum().backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


def test_knows_five_depths_only() -> None:
    assert sorted(BLOCKS) == [10, 18, 34, 50, 101]
    with pytest.raises(KeyError):
        resnet(20, cifar_stem=True, channels=3, classes=10)
