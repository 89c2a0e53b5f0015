"""Series: every bit is kept, and damage is noticed."""

from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from factory import make_series

from runner.errors import StudyError
from runner.series import Series


def test_every_array_comes_back_bit_by_bit(tmp_path: Path) -> None:
    loss = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000000], dtype=np.uint32).view(np.float32)
    data = np.array([[-(2**63), 2**63 - 1]] * 4)
    steps = {name: np.arange(4.0) for name in ("step_ms", "enqueue_ms", "wait_ms")}
    none = {"evaluated": np.zeros(0, dtype=np.int64), "evaluations": np.zeros((0, 2))}
    written = make_series(loss=loss, data=data, shape=np.zeros(4, dtype=np.int64), **steps, **none)
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


WRONG = {
    "a step too few": ({"loss": np.zeros(15, dtype=np.float32)}, "'loss': 15"),
    "a table for a row": ({"step_ms": np.zeros((16, 2))}, "step_ms has 2 dimensions"),
    "words": ({"wait_ms": np.array(["slow"] * 16)}, "wait_ms has 1 dimensions of <U4"),
    "names without figures": ({"evaluation_names": np.array(["accuracy"])}, r"\(1, 2\), \(1, 1\) is due"),
}


@pytest.mark.parametrize("how", WRONG)
def test_arrays_that_do_not_go_together_are_an_error_that_names_file_and_array(how: str, tmp_path: Path) -> None:
    changes, said = WRONG[how]
    path = tmp_path / "series.npz"
    make_series(**changes).write(path)
    with pytest.raises(StudyError, match=said) as caught:
        Series.read(path)
    assert str(path) in str(caught.value) and "set its trial's folder aside" in str(caught.value)


def test_arrays_of_another_version_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    arrays = {field.name: getattr(make_series(), field.name) for field in fields(Series)}
    np.savez(path, colour=np.zeros(3), **arrays)
    with pytest.raises(StudyError, match=str(path)):
        Series.read(path)


def test_no_flipped_bit_passes_for_another_series_or_ends_in_another_error(tmp_path: Path) -> None:
    path, written = tmp_path / "series.npz", make_series()
    written.write(path)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1 :])
        try:
            read = Series.read(path)
        except StudyError:
            continue
        assert all(np.array_equal(getattr(read, field.name), getattr(written, field.name)) for field in fields(Series))


def without_checksum(path: Path, **changes: Any) -> Path:
    """A series as it was written before there were checksums."""
    series = make_series(**changes)
    np.savez_compressed(path, **{field.name: getattr(series, field.name) for field in fields(Series)})
    return path


def test_a_series_without_a_checksum_is_read_all_the_same_and_its_damage_noticed(tmp_path: Path) -> None:
    path = without_checksum(tmp_path / "series.npz")
    assert np.array_equal(Series.read(path).loss, make_series().loss)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(StudyError, match=str(path)):
        Series.read(path)


def test_other_programs_read_it_with_numpy(tmp_path: Path) -> None:
    written = make_series()
    written.write(tmp_path / "series.npz")
    with np.load(tmp_path / "series.npz") as archive:
        assert set(archive) == {field.name for field in fields(Series)}
        assert all(np.array_equal(archive[name], getattr(written, name)) for name in archive)


def test_equal_series_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_series().write(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_compresses_is_compressed_and_what_does_not_is_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sketch, predictions = rng.normal(size=4096).astype(np.float32), np.zeros(65536, dtype=np.int32)
    make_series(sketch=sketch, predictions=predictions).write(tmp_path / "series.npz")
    with ZipFile(tmp_path / "series.npz") as archive:
        packed = {info.filename: info.compress_size / info.file_size for info in archive.infolist()}
    assert packed["sketch.npy"] == 1 and packed["predictions.npy"] < 0.01


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    make_series().write(path)
    content = path.read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :] for at in range(0, len(content), 7)]
    cut = [content[:size] for size in range(0, len(content), 97)]
    for damaged in [*flipped, *cut]:
        path.write_bytes(damaged)
        with pytest.raises(StudyError, match=str(path)):
            Series.read(path)


def test_arrays_of_other_lengths_are_not_taken_for_those_read_before(tmp_path: Path) -> None:
    for size in (1, 5, 3):
        make_series(predictions=np.arange(size)).write(tmp_path / "series.npz")
        assert Series.read(tmp_path / "series.npz").predictions.tolist() == list(range(size))


def test_a_part_is_what_the_whole_has_and_its_damage_is_noticed(tmp_path: Path) -> None:
    path, written = tmp_path / "series.npz", make_series()
    for written_to in (lambda: written.write(path), lambda: without_checksum(path)):
        written_to()
        shape, loss = Series.read_part(path, "shape", "loss")
        assert np.array_equal(shape, written.shape) and np.array_equal(loss, written.loss)
        assert (shape.dtype, loss.dtype) == (written.shape.dtype, written.loss.dtype)
    written.write(path)
    content = path.read_bytes()
    path.write_bytes(content[:-200] + bytes([content[-200] ^ 1]) + content[-199:])  # in what is not asked for
    with pytest.raises(StudyError, match=str(path)):
        Series.read_part(path, "step_ms")


def test_a_part_that_is_missing_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    np.savez(path, step_ms=np.zeros(3))
    with pytest.raises(StudyError, match=str(path)):
        Series.read_part(path, "step_ms", "loss")
