"""A single convolution: of the asked shape, over images or sequences, with or without the gradient of its inputs."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from runner.models.convolution import OneConvolution, convolution

SHAPE = {"outputs": 6, "kernel_size": 3, "stride": 1, "dilation": 1}
PLAIN = {**SHAPE, "transposed": False, "input_gradient": True, "head": True}


def made(dimensions: int, **changed: Any) -> OneConvolution:
    torch.manual_seed(0)
    network = convolution(**(PLAIN | changed), dimensions=dimensions, channels=4, classes=3)
    assert isinstance(network, OneConvolution)
    return network


def side(network: OneConvolution, inputs: Tensor) -> int:
    """The last side of what the layer gives."""
    seen: list[int] = []
    network.layer.register_forward_hook(lambda module, given, output: seen.append(output.shape[-1]))
    assert network(inputs).shape == (2, 3)
    return seen[0]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 30),
        ({"kernel_size": 5}, 28),
        ({"dilation": 2}, 28),
        ({"stride": 2}, 15),
        ({"transposed": True}, 34),
        ({"transposed": True, "stride": 15, "kernel_size": 33}, 31 * 15 + 33),
        ({"transposed": True, "dilation": 2}, 36),
    ],
)
def test_every_setting_acts_on_images_and_sequences_alike(changed: dict[str, Any], expected: int) -> None:
    assert side(made(2, **changed), torch.randn(2, 4, 32, 32)) == expected
    assert side(made(1, **changed), torch.randn(2, 32, 4)) == expected


def test_is_the_mean_of_the_convolution_through_a_linear_layer() -> None:
    network, images = made(2), torch.randn(2, 4, 8, 8)
    features = F.conv2d(images, network.layer.weight, network.layer.bias).mean((2, 3))
    assert torch.allclose(network(images), F.linear(features, network.head.weight, network.head.bias), atol=1e-6)


def test_a_sequence_has_its_features_last() -> None:
    network, sequences = made(1), torch.randn(2, 9, 4)
    features = F.conv1d(sequences.mT, network.layer.weight, network.layer.bias).mean(2)
    assert torch.allclose(network(sequences), F.linear(features, network.head.weight, network.head.bias), atol=1e-6)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_the_gradient_of_the_inputs_is_worked_out_while_training_where_asked_for(asked: bool, training: bool) -> None:
    network, images = made(2, input_gradient=asked).train(training), torch.randn(2, 4, 8, 8)
    seen: list[bool] = []
    network.layer.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].requires_grad))
    network(images).sum().backward()
    assert seen == [asked and training]
    assert not images.requires_grad


def test_the_gradient_of_the_weights_does_not_depend_on_it() -> None:
    images, found = torch.randn(2, 4, 8, 8), []
    for asked in (True, False):
        network = made(2, input_gradient=asked)
        network(images).square().sum().backward()
        found.append(nn.utils.parameters_to_vector([one.grad for one in network.parameters()]))
    assert torch.equal(*found)


def test_without_a_head_it_is_the_layer_alone() -> None:
    bare = convolution(**PLAIN | {"head": False}, dimensions=2, channels=4, classes=3)
    assert type(bare) is nn.Conv2d
    bare = convolution(**PLAIN | {"head": False}, dimensions=1, channels=4, classes=3)
    sequences = torch.randn(2, 9, 4)
    expected = F.conv1d(sequences.mT, *[one.detach() for one in bare.parameters()])
    assert torch.allclose(bare(sequences), expected, atol=1e-6)


def test_volumes_are_not_known() -> None:
    with pytest.raises(KeyError):
        made(3)
