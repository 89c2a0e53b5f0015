"""Arrays in one file: a header that promises something else than there is gives an error, never other bytes."""

import zlib

import numpy as np
import pytest

from runner.arrays import packed, unpacked

VALUES = np.random.default_rng(0).normal(size=64)


def forged(before: bytes, after: bytes) -> bytes:
    """The content of a file with 64 numbers whose header was changed, with a checksum that fits."""
    content = packed({"values": VALUES})
    assert content.count(before) == 1 and len(before) == len(after)
    changed = content.replace(before, after)[: -len("crc32=01234567")]
    return changed + b"crc32=%08x" % zlib.crc32(changed)


def test_only_the_arrays_that_are_asked_for_are_unpacked() -> None:
    content = packed({"values": VALUES, "zeros": np.zeros((3, 2), dtype=np.int32), "none": np.zeros((0, 4))})
    found = unpacked(content)
    assert list(found) == ["values", "zeros", "none"]
    assert list(unpacked(content, "none", "values")) == ["values", "none"]
    assert np.array_equal(found["values"], VALUES)
    assert (found["zeros"].shape, found["none"].shape) == ((3, 2), (0, 4)) and found["zeros"].dtype == np.int32


def test_columns_first_stay_what_they_are() -> None:
    table = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(unpacked(packed({"table": table}))["table"], table)


def test_bytes_are_never_taken_for_objects() -> None:
    with pytest.raises(ValueError, match="objects"):
        unpacked(forged(b"'<f8',", b"'|O' ,"))


@pytest.mark.parametrize("shape", [b"(63,)", b"(65,)"])
def test_an_array_has_as_many_bytes_as_its_header_says(shape: bytes) -> None:
    with pytest.raises(ValueError, match="has 512 bytes"):
        unpacked(forged(b"(64,)", shape))
