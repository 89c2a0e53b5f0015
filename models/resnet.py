"""Residual networks: torchvision's own class, with any number of channels and a stem for small images."""

from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

BLOCKS: dict[int, tuple[type[BasicBlock | Bottleneck], list[int]]] = {
    10: (BasicBlock, [1, 1, 1, 1]),
    18: (BasicBlock, [2, 2, 2, 2]),
    34: (BasicBlock, [3, 4, 6, 3]),
    50: (Bottleneck, [3, 4, 6, 3]),
    101: (Bottleneck, [3, 4, 23, 3]),
}
"""The kind of block and the number of blocks in each of the four stages, by depth."""


def resnet(depth: int, cifar_stem: bool, channels: int, classes: int) -> nn.Module:
    """A residual network (He et al., CVPR 2016): images (B, channels, H, W) to logits (B, classes).

    `depth` is one of `BLOCKS`, else KeyError. With `cifar_stem` the first convolution is 3x3 with stride 1 and no
    pooling follows, as that paper has it for CIFAR's 32x32 images. Weights are drawn as torchvision draws them.
    """
    block, stages = BLOCKS[depth]
    network = ResNet(block, stages, num_classes=classes)
    if cifar_stem or channels != 3:
        kernel_size, stride = (3, 1) if cifar_stem else (7, 2)
        network.conv1 = nn.Conv2d(channels, 64, kernel_size, stride, padding=kernel_size // 2, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    if cifar_stem:
        network.maxpool = nn.Identity()
    return network
