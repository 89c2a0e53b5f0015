"""torchvision's networks come as torchvision publishes them, and take images with other numbers of channels."""

import pytest
import torch
from torchvision.models import densenet121

from runner.models.torchvision_nets import torchvision
from runner.schema_models import ARCHITECTURES

PUBLISHED = {
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "densenet121": 7_978_856,
    "densenet201": 20_013_928,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "efficientnet_b0": 5_288_548,
}
"""The numbers of parameters in torchvision's documentation, for ImageNet's thousand classes."""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_has_its_published_number_of_parameters(architecture: str) -> None:
    with torch.device("meta"):
        network = torchvision(architecture, channels=3, classes=1000)
    assert sum(parameter.numel() for parameter in network.parameters()) == PUBLISHED[architecture]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_takes_grey_images(architecture: str) -> None:
    with torch.device("meta"):
        network = torchvision(architecture, channels=1, classes=7)
        assert network(torch.randn(2, 1, 64, 64)).shape == (2, 7)


def test_equals_torchvision_under_the_same_seed() -> None:
    torch.manual_seed(0)
    ours = torchvision("densenet121", channels=3, classes=5)
    torch.manual_seed(0)
    theirs = densenet121(num_classes=5)
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(ours(images), theirs(images))


def test_only_the_first_convolution_changes_with_the_channels() -> None:
    torch.manual_seed(0)
    colour = torchvision("mobilenet_v2", channels=3, classes=5).state_dict()
    torch.manual_seed(0)
    grey = torchvision("mobilenet_v2", channels=1, classes=5).state_dict()
    changed = [name for name, weight in colour.items() if not torch.equal(weight, grey[name])]
    assert changed == ["features.0.0.weight"]
    assert grey["features.0.0.weight"].shape == (32, 1, 3, 3)
    assert grey["features.0.0.weight"].std() > 0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="vgg17"):
        torchvision("vgg17", channels=3, classes=5)
