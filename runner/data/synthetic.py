"""Random data of any shape, the same in every process, with targets that can be learned from the inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from runner.data.data import BySize, Data, common_shape
from runner.errors import Refusal

PATTERN, TRAIN, TEST = 0, 1, 2  # the seeds; no setting and no global generator has a say
Arrays = tuple[np.ndarray, np.ndarray]


def load(config: dict[str, Any]) -> Data:
    """Data in any view. Raises Refusal when there are fewer items than sizes or lengths to take in turn."""
    view, key = config["view"], "size" if config["view"] in ("image", "mask") else "length"
    sizes = config[f"{key}s"] or [config[key]]
    for items in ("items", "test_items"):
        if config[items] < len(sizes):
            raise Refusal(f"dataset.{items}={config[items]}: dataset.{key}s needs at least one each, {len(sizes)}")
    train = _parts(config, sizes, config["items"], TRAIN)
    test = _parts(config, sizes, config["test_items"], TEST)
    shape = common_shape(tuple(part.tensors[0].shape[1:]) for part in train)
    classes = config["channels"] if view == "forecast" else config["classes"]
    return Data(view, BySize.of(train), BySize.of(test), shape, classes, config["resident"], config["workers"])


def _parts(config: dict[str, Any], sizes: list[int], items: int, seed: int) -> list[TensorDataset]:
    parts = []
    for number, size in enumerate(sizes):
        pattern, random = np.random.default_rng(PATTERN), np.random.default_rng([seed, number])
        count = items // len(sizes) + (number < items % len(sizes))
        arrays = VIEWS[config["view"]](pattern, random, count, config["classes"], config["channels"], size)
        parts.append(TensorDataset(*(torch.from_numpy(array) for array in arrays)))
    return parts


# Each view: what is the same in all items comes from `pattern`, what differs from `random`.


def _images(pattern: Any, random: Any, items: int, classes: int, channels: int, size: int) -> Arrays:
    prototypes = pattern.standard_normal((classes, channels, 4, 4), np.float32)
    targets, cell = random.integers(classes, size=items), np.arange(size) * 4 // size
    occurring, places = np.unique(targets, return_inverse=True)  # a thousand classes would fill more than the items do
    pictures = np.ascontiguousarray(prototypes[occurring][:, :, cell[:, None], cell] / 2)
    inputs = _noise(random, (items, channels, size, size), 1.0)
    for image, place in zip(inputs, places, strict=True):
        image += pictures[place]  # one by one: all at once would need the memory twice
    return inputs, targets


def _masks(pattern: Any, random: Any, items: int, classes: int, channels: int, size: int) -> Arrays:
    colours, cell = pattern.standard_normal((channels, classes), np.float32), np.arange(size) * 4 // size
    targets = random.integers(classes, size=(items, 4, 4))[:, cell[:, None], cell]
    inputs = _noise(random, (items, channels, size, size), 0.5)
    inputs += colours[:, targets].swapaxes(0, 1)
    return inputs, targets


def _sequences(pattern: Any, random: Any, items: int, classes: int, channels: int, length: int) -> Arrays:
    prototypes = pattern.standard_normal((classes, 1, channels), np.float32)
    targets = random.integers(classes, size=items)
    return _noise(random, (items, length, channels), 1.0) + prototypes[targets] / 2, targets


def _symbols(pattern: Any, random: Any, items: int, classes: int, channels: int, length: int) -> Arrays:
    successor = pattern.permutation(classes)
    symbols = random.integers(classes, size=(items, length + 1))
    follows = random.random((items, length)) < 0.8
    for step in range(length):
        symbols[:, step + 1] = np.where(follows[:, step], successor[symbols[:, step]], symbols[:, step + 1])
    return symbols[:, :-1], symbols[:, 1:]


def _waves(pattern: Any, random: Any, items: int, classes: int, channels: int, length: int) -> Arrays:
    speed = pattern.uniform(0.1, 0.5, channels)
    phase = random.uniform(0, 2 * np.pi, (items, 1, channels))
    values = np.sin(speed * np.arange(length + 1)[:, None] + phase).astype(np.float32)
    values += _noise(random, values.shape, 0.1)
    return values[:, :-1], values[:, -1]


def _noise(random: Any, shape: tuple[int, ...], deviation: float) -> np.ndarray:
    # Uniform: seven times as fast as normal, and in every trial the data are made anew.
    values: np.ndarray = random.random(shape, np.float32)
    values -= 0.5
    values *= deviation * 12**0.5
    return values


VIEWS: dict[str, Callable[..., Arrays]] = {
    "image": _images,
    "mask": _masks,
    "sequence": _sequences,
    "next": _symbols,
    "forecast": _waves,
}
