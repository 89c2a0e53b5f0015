"""The model, from its settings and from what the data look like."""

from typing import Any

import torch
from torch import nn

from runner.data import Data
from runner.errors import Refusal
from runner.target import call


def build_model(config: dict[str, Any], data: Data) -> nn.Module:
    """Build the model on the CPU, so that its initial weights are the same for every device.

    Raises Refusal when a user's own model cannot be found or does not take its arguments.
    """
    name, kind = config["name"], {key: value for key, value in config.items() if key != "name"}
    model: nn.Module
    if name == "resnet":
        from runner.models.resnet import resnet

        model = resnet(**kind, channels=_channels(data), classes=data.classes)
    elif name == "unet":
        from runner.models.unet import unet

        model = unet(**kind, channels=_channels(data), classes=data.classes)
    elif name == "lstm":
        model = _recurrent(kind, data)
    else:
        model = _custom(config)
    return model


def _channels(data: Data) -> int:
    channels = data.input_shape[0]
    assert channels is not None  # sizes may vary, channels may not
    return channels


def _recurrent(kind: dict[str, Any], data: Data) -> nn.Module:
    from runner.models.lstm import lstm

    symbols = data.view == "next"
    model: nn.Module = lstm(
        **kind,
        outputs=data.classes,
        features=None if symbols else data.input_shape[-1],
        vocabulary=data.classes if symbols else None,
        every_step=symbols,
    )
    return model


def _custom(config: dict[str, Any]) -> nn.Module:
    model = call("model._target_", config["_target_"], config["args"])
    if not isinstance(model, nn.Module):
        raise Refusal(f"model._target_={config['_target_']}: gives a {type(model).__name__}, an nn.Module is needed")
    return model


def compiled(model: nn.Module, mode: str) -> nn.Module:
    """The model as train.compile asks: as it is, or through torch.compile."""
    if mode == "off":
        return model
    return torch.compile(model, mode=None if mode == "default" else mode)  # type: ignore[return-value]
