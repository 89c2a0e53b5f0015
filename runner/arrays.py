"""Named arrays in one file of NumPy's format for several (npz), with a checksum: equal arrays are equal bytes."""

import io
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Any, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from runner.errors import StudyError

T = TypeVar("T")
_REMEDY = "restore it or set its trial's folder aside"

# The archive's comment is the checksum of everything before it: a file can be checked without being unpacked.
_SIZE = len("crc32=01234567")
# Of each file in a ZIP archive: method, packed size, size, lengths of name and extra field (APPNOTE.TXT, 4.3.7).
_LOCAL_HEADER = Struct("<8xH8xIIHH")


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file that holds these arrays, in this order."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            _pack(archive, name, array)
        archive.comment = bytes(_SIZE)
    content = buffer.getvalue()[:-_SIZE]
    return content + _checksum(content)


def read_arrays(path: Path, what: str, make: Callable[[dict[str, np.ndarray]], T], *names: str) -> T:
    """Read what `packed` made, and make something of it: of all arrays, or of those with these names alone.

    Raises StudyError naming the path and what is wrong for a damaged file, and for arrays with which `make` raises
    ValueError; `what` says what is due.
    """
    try:
        return make(unpacked(path.read_bytes(), *names))
    except Exception as error:  # zipfile, zlib and numpy have no error in common for what damage does to them
        raise StudyError(f"{path}: not {what} of this version ({error}); {_REMEDY}") from error


def unpacked(content: bytes, *names: str) -> dict[str, np.ndarray]:
    """The arrays of such a content: all, or those with these names; the others are not unpacked.

    A content without a checksum is read all the same. Whatever is raised for a damaged one, there is no common error.
    """
    wanted = {f"{name}.npy" for name in names}
    if _sound(content):
        return {name.removesuffix(".npy"): _array(raw) for name, raw in _members(content, wanted)}
    with ZipFile(io.BytesIO(content)) as archive:  # written before there were checksums, or damaged
        if archive.comment:
            raise ValueError("its checksum does not fit")
        found = [name for name in archive.namelist() if not wanted or name in wanted]
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in found}


def _pack(archive: ZipFile, name: str, array: np.ndarray) -> None:
    """Add an array, compressed where that saves half: a sketch's bits do not compress, and unpacking takes its time."""
    raw = io.BytesIO()
    np.lib.format.write_array(raw, np.ascontiguousarray(array), allow_pickle=False)
    worth = 2 * len(zlib.compress(raw.getvalue())) < len(raw.getvalue())
    archive.writestr(ZipInfo(f"{name}.npy"), raw.getvalue(), ZIP_DEFLATED if worth else ZIP_STORED)


def _checksum(content: bytes | memoryview) -> bytes:
    return b"crc32=%08x" % zlib.crc32(content)


def _sound(content: bytes) -> bool:
    return content[-_SIZE:] == _checksum(memoryview(content)[:-_SIZE])


def _members(content: bytes, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """Files in an archive that `packed` made and that is sound: zipfile would check all of it once more."""
    start = 0
    while content.startswith(b"PK\3\4", start):
        method, size_packed, size, name, extra = _LOCAL_HEADER.unpack_from(content, start)
        named = start + _LOCAL_HEADER.size
        begin = named + name + extra
        start = begin + size_packed
        file = content[named : named + name].decode()
        if not wanted or file in wanted:
            raw = content[begin:start]
            yield file, raw if method == ZIP_STORED else zlib.decompress(raw, -15, size)


def _array(raw: bytes) -> np.ndarray:
    """The array of a .npy file: what numpy.load gives, but a header that was seen before is not parsed again."""
    start = 10 + int.from_bytes(raw[8:10], "little")
    shape, fortran, dtype, size = _header(raw[:start])
    if len(raw) != start + size:
        raise ValueError(f"an array of {shape} {dtype} has {len(raw) - start} bytes")
    return np.ndarray(shape, dtype, raw, start, order="F" if fortran else "C")


@lru_cache(256)
def _header(raw: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """What the header of a .npy file says: shape, whether columns come first, type, and how many bytes these take."""
    header = io.BytesIO(raw)
    if np.lib.format.read_magic(header) != (1, 0):
        raise ValueError("it has an array of another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
    if dtype.hasobject:  # the bytes would be taken for places in memory
        raise ValueError("it has an array of objects")
    return shape, fortran, dtype, math.prod(shape) * dtype.itemsize
