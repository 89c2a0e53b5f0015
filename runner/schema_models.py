"""The families of the group `model` as frozen dataclasses, and the views of the data that each works on."""

from dataclasses import dataclass, field
from typing import Any

from runner.schema_datasets import CUSTOM_VIEW, VIEWS
from runner.schema_groups import LEAST_1, allowed

# Of the networks of torchvision those that papers have measured. The kinds of layers as in models/layer.py.
ARCHITECTURES = (
    *("vgg16", "vgg19", "resnet50", "resnet152", "densenet121", "densenet201"),
    *("mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0"),
)
LAYERS = (
    *("convolution", "max_pooling", "average_pooling", "global_pooling", "batch_norm", "layer_norm", "instance_norm"),
    *("relu", "sigmoid", "tanh", "rnn", "lstm", "gru"),
)


@dataclass(frozen=True, kw_only=True)
class Resnet:
    """torchvision's ResNet; `cifar_stem` is a 3x3 convolution without pooling."""

    name: str
    depth: int = field(metadata=allowed(10, 18, 34, 50, 101))
    cifar_stem: bool


@dataclass(frozen=True, kw_only=True)
class Unet:
    """Ronneberger's U-Net with `width` channels in its first level and `depth` down-samplings."""

    name: str
    width: int = field(metadata=LEAST_1)
    depth: int = field(metadata=LEAST_1)
    upsampling: str = field(metadata=allowed("transposed", "bilinear"))


@dataclass(frozen=True, kw_only=True)
class Lstm:
    """A recurrent network."""

    name: str
    cell: str = field(metadata=allowed("lstm", "gru", "rnn"))
    layers: int = field(metadata=LEAST_1)
    hidden_size: int = field(metadata=LEAST_1)
    bidirectional: bool
    dropout: float = field(metadata={"least": 0.0, "below": 1.0})


@dataclass(frozen=True, kw_only=True)
class ResnetCifar:
    """Summers and Dinneen's narrow ResNet for small images."""

    name: str
    depth: int = field(metadata=allowed(14, 20, 32, 44, 56, 110))


@dataclass(frozen=True, kw_only=True)
class PreactResnet:
    """A ResNet that normalises before it convolves, for small images."""

    name: str
    depth: int = field(metadata=allowed(18, 34))


@dataclass(frozen=True, kw_only=True)
class Resnet9:
    """Jordan's ResNet-9."""

    name: str


@dataclass(frozen=True, kw_only=True)
class SmallCnn:
    """Zhuang's network of three convolutions."""

    name: str
    batch_norm: bool


@dataclass(frozen=True, kw_only=True)
class MediumCnn:
    """Zhuang's network of six convolutions."""

    name: str
    kernel_size: int = field(metadata=allowed(1, 3, 5, 7))


@dataclass(frozen=True, kw_only=True)
class TorchvisionModel:
    """One of torchvision's networks, untrained."""

    name: str
    architecture: str = field(metadata=allowed(*ARCHITECTURES))


@dataclass(frozen=True, kw_only=True)
class FasterRcnn:
    """torchvision's Faster R-CNN, untrained, on images of which the shorter side is scaled to `min_size` pixels."""

    name: str
    backbone: str = field(metadata=allowed("resnet50", "mobilenet_v3_large"))
    min_size: int = field(metadata={"least": 32})


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of a kind and little else; without `head` nothing else, for phase=calls."""

    name: str
    kind: str = field(metadata=allowed(*LAYERS))
    head: bool


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """One convolution, over images or sequences as the data's view has it; `outputs` is its number of channels.

    Without `head` it is the layer alone, for phase=calls.
    """

    name: str
    outputs: int = field(metadata=LEAST_1)
    kernel_size: int = field(metadata=LEAST_1)
    stride: int = field(metadata=LEAST_1)
    dilation: int = field(metadata=LEAST_1)
    transposed: bool
    input_gradient: bool
    head: bool


@dataclass(frozen=True, kw_only=True)
class CustomModel:
    """A user's own: `_target_` is called with `args` and returns an nn.Module."""

    name: str
    _target_: str
    args: dict[str, Any] = field(default_factory=dict)


MODELS: dict[str, Any] = {
    "resnet": Resnet,
    "unet": Unet,
    "lstm": Lstm,
    "resnet_cifar": ResnetCifar,
    "preact_resnet": PreactResnet,
    "resnet9": Resnet9,
    "small_cnn": SmallCnn,
    "medium_cnn": MediumCnn,
    "torchvision": TorchvisionModel,
    "faster_rcnn": FasterRcnn,
    "layer": Layer,
    "convolution": Convolution,
    "custom": CustomModel,
}
TASKS = dict.fromkeys(MODELS, ("image",)) | {
    "unet": ("mask",),
    "lstm": ("sequence", "next", "forecast"),
    "convolution": ("image", "sequence"),
    "faster_rcnn": (CUSTOM_VIEW,),
    "custom": (*VIEWS, CUSTOM_VIEW),
}
