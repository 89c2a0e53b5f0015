"""The U-Net gives one logit for each class and pixel, at every size its depth allows."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from runner.models.unet import BilinearUp, TransposedUp, unet

UPSAMPLINGS = ("transposed", "bilinear")


def parameters(network: nn.Module) -> int:
    """How many numbers it learns."""
    return sum(parameter.numel() for parameter in network.parameters())


def test_parameters_of_the_smallest_one_counted_by_hand() -> None:
    # Two convolutions and norms, i to o channels: 9io + 9oo + 4o. So 1-2: 62, 2-4: 232, 4-2: 116. The head: 2*3 + 3.
    shared = 62 + 232 + 116 + 9
    assert parameters(unet(2, 1, "transposed", channels=1, classes=3)) == shared + (4 * 2 * 2 * 2 + 2)
    assert parameters(unet(2, 1, "bilinear", channels=1, classes=3)) == shared + (4 * 2 + 2)


def test_parameters_at_the_size_of_the_paper() -> None:
    widths = [3, 64, 128, 256, 512, 1024]
    down = sum(9 * i * o + 9 * o * o + 4 * o for i, o in pairwise(widths))
    up = sum(4 * 2 * o * o + o + 9 * 2 * o * o + 9 * o * o + 4 * o for o in widths[1:5])
    with torch.device("meta"):
        assert parameters(unet(64, 4, "transposed", channels=3, classes=2)) == down + up + 64 * 2 + 2 == 31_037_698


@pytest.mark.parametrize("upsampling", UPSAMPLINGS)
@pytest.mark.parametrize(("side", "depth"), [(8, 2), (30, 3)])
def test_masks_are_as_large_as_the_images(upsampling: str, side: int, depth: int) -> None:
    assert unet(2, depth, upsampling, 3, 5)(torch.randn(2, 3, side, side)).shape == (2, 5, side, side)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(UPSAMPLINGS), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9))
def test_any_size_fits(upsampling: str, depth: int, more_rows: int, more_columns: int) -> None:
    height, width = 2**depth + more_rows, 2**depth + more_columns
    network = unet(1, depth, upsampling, channels=1, classes=2).eval()
    assert network(torch.randn(1, 1, height, width)).shape == (1, 2, height, width)


def test_refuses_images_smaller_than_its_depth() -> None:
    with pytest.raises(ValueError, match="side below 16"):
        unet(1, 4, "bilinear", 1, 2)(torch.randn(2, 1, 8, 32))


@pytest.mark.parametrize("upsampling", UPSAMPLINGS)
def test_gradient_reaches_every_parameter(upsampling: str) -> None:
    network = unet(4, 2, upsampling, channels=2, classes=3)
    network(torch.randn(2, 2, 9, 9)).square().sum().backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


def test_bilinear_up_equals_interpolating_first() -> None:
    up, features = BilinearUp(3), torch.randn(2, 6, 4, 5)
    first_larger = up.convolution(F.interpolate(features, size=(9, 10), mode="bilinear"))
    torch.testing.assert_close(up(features, torch.Size((9, 10))), first_larger)


def test_transposed_up_doubles_and_fills_an_odd_side_with_its_bias() -> None:
    up, features = TransposedUp(3), torch.randn(2, 6, 4, 5)
    larger = up(features, torch.Size((9, 10)))
    torch.testing.assert_close(larger[:, :, :8], up.convolution(features))
    torch.testing.assert_close(larger[:, :, 8], up.convolution.bias[None, :, None].expand(2, 3, 10))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("upsampling", UPSAMPLINGS)
def test_trains_on_cuda_under_deterministic_algorithms(upsampling: str) -> None:
    torch.manual_seed(0)
    network, images = unet(4, 2, upsampling, channels=1, classes=2).cuda(), torch.randn(2, 1, 30, 30).cuda()
    torch.use_deterministic_algorithms(True)
    try:
        network(images).square().sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(parameter.grad.any() for parameter in network.parameters())
