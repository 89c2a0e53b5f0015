"""Series: every bit is kept, and damage is noticed."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import make_series

from runner.errors import StudyError
from runner.series import Series


def test_every_array_comes_back_bit_by_bit(tmp_path: Path) -> None:
    loss = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000000], dtype=np.uint32).view(np.float32)
    written = make_series(loss=loss, data=np.array([[-(2**63), 2**63 - 1]]), evaluations=np.zeros((0, 2)))
    written.write(tmp_path / "series.npz")
    read = Series.read(tmp_path / "series.npz")
    for field in fields(Series):
        one, other = getattr(written, field.name), getattr(read, field.name)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_an_error_that_names_it(share: float, tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    make_series().write(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(StudyError, match=str(path)):
        Series.read(path)


def test_a_hole_is_an_error_wherever_it_is(tmp_path: Path) -> None:
    path, rng = tmp_path / "series.npz", np.random.default_rng(0)
    make_series(sketch=rng.normal(size=4096).astype(np.float32)).write(path)
    content = path.read_bytes()
    for start in range(0, len(content), 512):
        hole = content[start : start + 512]
        path.write_bytes(content[:start] + bytes(len(hole)) + content[start + len(hole) :])
        with pytest.raises(StudyError, match=str(path)):
            Series.read(path)


def test_a_missing_array_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    np.savez(path, step_ms=np.zeros(3))
    with pytest.raises(StudyError, match=str(path)):
        Series.read(path)


def test_nothing_is_executed_when_a_series_is_read(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    arrays: dict[str, Any] = {field.name: np.array([{}], dtype=object) for field in fields(Series)}
    np.savez(path, **arrays)
    with pytest.raises(StudyError, match=str(path)):
        Series.read(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=str(tmp_path / "series.npz")):
        Series.read(tmp_path / "series.npz")
