"""The model, from its settings and from what the data look like."""

from importlib import import_module
from typing import Any

import torch
from torch import nn

from runner.data import Data
from runner.errors import Refusal
from runner.target import blaming, call

# The function of each model has its name, and stands in the module runner.models.NAME or in one of these.
MODULES = {"small_cnn": "cnn", "medium_cnn": "cnn", "torchvision": "torchvision_nets"}


def build_model(config: dict[str, Any], data: Data) -> nn.Module:
    """Build the model on the CPU, so that its initial weights are the same for every device.

    Raises Refusal when a user's own model cannot be found or does not take its arguments.
    """
    name, kind = config["name"], {key: value for key, value in config.items() if key != "name"}
    if name == "custom":
        return _custom(config)
    make = getattr(import_module(f"runner.models.{MODULES.get(name, name)}"), name)
    model: nn.Module
    if name == "lstm":
        model = make(**kind, **_sequences(data))
    elif name == "convolution":
        model = make(**kind, dimensions=len(data.input_shape) - 1, channels=_channels(data), classes=data.classes)
    elif name == "faster_rcnn":
        model = make(**kind, classes=data.classes)  # its images have three channels
    else:
        model = make(**kind, channels=_channels(data), classes=data.classes)
    return model


def _channels(data: Data) -> int:
    channels = data.input_shape[-1 if data.view == "sequence" else 0]
    assert channels is not None  # sizes may vary, channels may not
    return channels


def _sequences(data: Data) -> dict[str, Any]:
    """What a recurrent network must know of the data."""
    symbols = data.view == "next"
    return {
        "outputs": data.classes,
        "features": None if symbols else data.input_shape[-1],
        "vocabulary": data.classes if symbols else None,
        "every_step": symbols,
    }


def _custom(config: dict[str, Any]) -> nn.Module:
    with blaming(f"model._target_={config['_target_']}"):
        model = call("model._target_", config["_target_"], config["args"])
    if not isinstance(model, nn.Module):
        raise Refusal(f"model._target_={config['_target_']}: gives a {type(model).__name__}, an nn.Module is needed")
    return model


def compiled(model: nn.Module, mode: str) -> nn.Module:
    """The model as train.compile asks: as it is, or through torch.compile."""
    if mode == "off":
        return model
    return torch.compile(model, mode=None if mode == "default" else mode)  # type: ignore[return-value]
