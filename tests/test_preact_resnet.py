"""The pre-activation network is the one that is in circulation: its size, its order of layers, its drawing."""

import pytest
import torch
from torch.nn import functional as F

from runner.models.preact_resnet import PreactivationBlock, preact_resnet


def block_by_hand(inputs: int, outputs: int) -> int:
    """Its parameters: two normalisations, two convolutions, and a 1x1 one where the width changes."""
    shortcut = inputs * outputs if inputs != outputs else 0
    return 2 * inputs + 9 * inputs * outputs + 2 * outputs + 9 * outputs * outputs + shortcut


WIDTHS = [64, 64, 64, 128, 128, 256, 256, 512, 512]


def test_has_11171146_parameters_at_depth_18() -> None:
    with torch.device("meta"):
        network = preact_resnet(18, channels=3, classes=10)
    by_hand = 3 * 64 * 9 + sum(map(block_by_hand, WIDTHS[:-1], WIDTHS[1:])) + 512 * 10 + 10
    assert sum(parameter.numel() for parameter in network.parameters()) == 11_171_146 == by_hand


def test_is_deeper_at_depth_34() -> None:
    with torch.device("meta"):
        network = preact_resnet(34, channels=3, classes=10)
    assert sum(isinstance(module, PreactivationBlock) for module in network) == 16
    with pytest.raises(KeyError):
        preact_resnet(50, channels=3, classes=10)


def test_images_are_halved_three_times() -> None:
    network, sides = preact_resnet(18, channels=1, classes=3), []
    for block in network[1:9]:
        block.register_forward_hook(lambda module, inputs, output: sides.append(output.shape[-1]))
    assert network(torch.randn(2, 1, 16, 16)).shape == (2, 3)
    assert sides == [16, 16, 8, 8, 4, 4, 2, 2]


def test_normalises_before_it_convolves_and_keeps_the_sign_of_its_sum() -> None:
    torch.manual_seed(0)
    block = PreactivationBlock(4, 4)
    features = torch.randn(2, 4, 5, 5)
    first = F.conv2d(F.relu(F.batch_norm(features, None, None, training=True)), block.convolution1.weight, padding=1)
    second = F.conv2d(F.relu(F.batch_norm(first, None, None, training=True)), block.convolution2.weight, padding=1)
    assert torch.allclose(block(features), features + second, atol=1e-5)
    assert (block(features) < 0).any()


def test_the_shortcut_of_a_narrowing_block_starts_from_what_is_normalised() -> None:
    torch.manual_seed(0)
    block = PreactivationBlock(4, 8)
    torch.nn.init.zeros_(block.convolution2.weight)
    features = torch.randn(2, 4, 6, 6)
    active = F.relu(F.batch_norm(features, None, None, training=True))
    assert torch.allclose(block(features), F.conv2d(active, block.halved.weight, stride=2), atol=1e-6)
