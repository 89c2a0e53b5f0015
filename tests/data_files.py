"""What the tests of data sets share: plain settings as a trial gets them, small files, real data if there are any."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf
from PIL import Image

import runner.conf
from runner.schema_datasets import DATASETS


def settings(name: str, view: str, **changes: Any) -> dict[str, Any]:
    """The plain settings of a data set: those of conf/ and these changes."""
    shipped = OmegaConf.to_container(
        OmegaConf.load(Path(str(runner.conf.__file__)).parent / "dataset" / f"{name}.yaml")
    )
    assert isinstance(shipped, dict)
    return asdict(DATASETS[name](**{**shipped, "view": view, **changes}))


def real_data(name: str) -> Path:
    """A file of the folder RUNNER_TEST_DATA; skips the test without it."""
    path = Path(os.environ.get("RUNNER_TEST_DATA", "RUNNER_TEST_DATA")) / name
    if not path.exists():
        pytest.skip(f"{path} is not there: set RUNNER_TEST_DATA to the folder that holds {name}")
    return path


def picture(path: Path, values: Any, size: Sequence[int] = (8, 8)) -> Path:
    """Write a picture: of one grey value, (height, width) in size, or of an array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values) if isinstance(values, np.ndarray) else Image.new("L", (size[1], size[0]), values)
    image.save(path)
    return path


def cut_in_half(path: Path) -> None:
    """Damage a file as a broken download does."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
