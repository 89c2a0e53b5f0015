"""The ResNet-9 has the layers of the example that it follows."""

import pytest
import torch

from runner.models.resnet9 import resnet9


def test_has_2274880_parameters() -> None:
    with torch.device("meta"):
        network = resnet9(channels=3, classes=10)
    convolutions = 3 * 64 * 9 + 64 * 128 * 25 + 2 * 128 * 128 * 9 + 128 * 256 * 9 + 2 * 256 * 256 * 9 + 256 * 128 * 9
    norms = 2 * (64 + 3 * 128 + 3 * 256 + 128)
    assert sum(parameter.numel() for parameter in network.parameters()) == 2_274_880 == convolutions + norms + 128 * 10


def test_shapes_from_layer_to_layer() -> None:
    network, shapes = resnet9(channels=3, classes=10), []
    for module in network:
        module.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape[1:])))
    network(torch.randn(2, 3, 32, 32))
    wide, narrow = [(64, 32, 32), (128, 16, 16), (128, 16, 16), (256, 16, 16)], [(256, 8, 8), (256, 8, 8), (128, 6, 6)]
    assert shapes == [*wide, *narrow, (128, 1, 1), (128,), (10,), (10,)]


@pytest.mark.parametrize(("channels", "side"), [(1, 11), (3, 24)])
def test_takes_images_of_11_pixels_and_more(channels: int, side: int) -> None:
    network = resnet9(channels, classes=4)
    assert network(torch.randn(2, channels, side, side)).shape == (2, 4)
    with pytest.raises(RuntimeError, match="Kernel size"):
        network(torch.randn(2, channels, 10, 10))


def test_weights_and_what_they_make_lie_channels_last() -> None:
    network = resnet9(channels=3, classes=10)
    assert network[0][0].weight.is_contiguous(memory_format=torch.channels_last)
    assert network[:4](torch.randn(2, 3, 16, 16)).is_contiguous(memory_format=torch.channels_last)


def test_logits_are_a_fifth_of_what_the_last_layer_gives() -> None:
    network = resnet9(channels=3, classes=10).eval()
    images = torch.randn(2, 3, 16, 16)
    features = network[:-2](images)
    assert torch.allclose(network(images), 0.2 * features @ network[-2].weight.T, rtol=1e-4, atol=1e-6)


def test_a_residual_adds_what_comes_in() -> None:
    residual = resnet9(channels=3, classes=10)[2].eval()
    torch.nn.init.zeros_(residual[1][1].weight)
    features = torch.randn(2, 128, 4, 4)
    assert torch.equal(residual(features), features)
