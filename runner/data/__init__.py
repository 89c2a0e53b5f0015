"""The data of a trial: loaded here, placed and cut into batches by runner.data.batches.

What an item is, without the batch, depends on the view:
    image     input float32 (C, H, W) in about unit scale   target int64 (): the class
    mask      input float32 (C, H, W)                       target int64 (H, W): the class of each pixel
    sequence  input float32 (T, F)                          target int64 (): the class
    next      input int64 (T,)                              target int64 (T,): the input moved on by one
    forecast  input float32 (T, F)                          target float32 (F,): the next row
    custom    whatever the model takes, a user's own or a detector: any nesting of lists, tuples and dicts of tensors
"""

from collections.abc import Callable
from typing import Any

from runner.data import boxes, custom, digits, image_folder, mask_folder, series, synthetic, text, torchvision_sets
from runner.data.data import CUSTOM, Data
from runner.data.rng import untouched

__all__ = ["CUSTOM", "FAMILIES", "Data", "load"]

FAMILIES: dict[str, Callable[[dict[str, Any]], Data]] = {
    "digits": digits.load,
    "synthetic": synthetic.load,
    "boxes": boxes.load,
    **dict.fromkeys(torchvision_sets.SETS, torchvision_sets.load),
    "image_folder": image_folder.load,
    "mask_folder": mask_folder.load,
    "text": text.load,
    "series": series.load,
    "custom": custom.load,
}


def load(config: dict[str, Any]) -> Data:
    """Load the data set that the settings describe; the global random generators stay as they are.

    config: the plain dataset settings with a concrete view. Raises Refusal for data that cannot be used.
    """
    with untouched():
        return FAMILIES[config["name"]](config)
