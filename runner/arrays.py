"""Named arrays in one file of NumPy's format for several (npz), with a checksum: equal arrays are equal bytes."""

import io
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from struct import Struct
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

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


def unpacked(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of such a content. Whatever is raised for a damaged one, zipfile, zlib and numpy have no common error.

    A content without a checksum is read all the same.
    """
    if _sound(content):
        return {name.removesuffix(".npy"): _array(raw) for name, raw in _members(content)}
    with ZipFile(io.BytesIO(content)) as archive:  # written before there were checksums, or damaged
        if archive.comment:
            raise ValueError("its checksum does not fit")
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}


def _pack(archive: ZipFile, name: str, array: np.ndarray) -> None:
    """Add an array, compressed where that saves half: a sketch's bits do not compress, and unpacking takes its time."""
    raw = io.BytesIO()
    np.lib.format.write_array(raw, np.ascontiguousarray(array), allow_pickle=False)
    worth = 2 * len(zlib.compress(raw.getvalue())) < len(raw.getvalue())
    archive.writestr(ZipInfo(f"{name}.npy"), raw.getvalue(), ZIP_DEFLATED if worth else ZIP_STORED)


def _checksum(content: bytes) -> bytes:
    return f"crc32={zlib.crc32(content):08x}".encode()


def _sound(content: bytes) -> bool:
    return content[-_SIZE:] == _checksum(content[:-_SIZE])


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in an archive that `packed` made and that is sound: zipfile would check all of it once more."""
    start = 0
    while content.startswith(b"PK\3\4", start):
        method, size_packed, size, name, extra = _LOCAL_HEADER.unpack_from(content, start)
        named = start + _LOCAL_HEADER.size
        begin = named + name + extra
        start = begin + size_packed
        raw = content[begin:start]
        yield content[named : named + name].decode(), raw if method == ZIP_STORED else zlib.decompress(raw, -15, size)


def _array(raw: bytes) -> np.ndarray:
    """The array of a .npy file: what numpy.load gives, but a header that was seen before is not parsed again."""
    start = 10 + int.from_bytes(raw[8:10], "little")
    shape, fortran, dtype = _header(raw[:start])
    return np.frombuffer(raw, dtype, offset=start).reshape(shape, order="F" if fortran else "C")


@lru_cache(256)
def _header(raw: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    header = io.BytesIO(raw)
    if np.lib.format.read_magic(header) != (1, 0):
        raise ValueError("it has an array of another version")
    return np.lib.format.read_array_header_1_0(header)
