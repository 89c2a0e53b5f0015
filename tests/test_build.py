"""Every model of conf/ is built for the data it is given, twice alike, and gives what the view needs."""

from typing import Any

import pytest
import torch
from composed import settings
from torch import Tensor

from runner.data import Data, load
from runner.schema_models import MODELS
from runner.settings import cell_config
from runner.worker.build import build_model

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = ["dataset=synthetic", "dataset.items=4", "dataset.test_items=4", "dataset.size=64", "dataset.channels=3"]
SMALLER = {"torchvision": ["model.architecture=mobilenet_v2"]}
SHIPPED = [name for name in MODELS if name not in ("custom", "faster_rcnn")]  # that one: test_detector.py


def loaded(name: str, *words: str) -> tuple[dict[str, Any], Data]:
    """The model's settings, and a few random data for it."""
    config = cell_config(settings(f"model={name}", *TINY, *SMALLER.get(name, []), *words))
    return config["model"], load(config["dataset"])


def outputs(name: str, *words: str) -> Tensor:
    """What the model makes of two items."""
    config, data = loaded(name, *words)
    inputs = torch.stack([data.train[index][0] for index in range(2)])
    torch.manual_seed(0)
    found: Tensor = build_model(config, data).eval()(inputs)
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_every_model_gives_a_number_for_each_class(name: str) -> None:
    assert outputs(name).shape[:2] == (2, 10)


def test_a_convolution_takes_sequences_too() -> None:
    assert outputs("convolution", "dataset.view=sequence").shape == (2, 10)


def test_images_of_different_sizes_are_no_obstacle() -> None:
    assert outputs("layer", "dataset.sizes=[8,9]").shape == (2, 10)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_model_is_built_alike_from_one_seed_and_otherwise_from_another(name: str) -> None:
    config, data = loaded(name)
    built = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        built.append(list(build_model(config, data).parameters()))
    assert all(map(torch.equal, built[0], built[1]))
    assert not all(map(torch.equal, built[0], built[2]))
