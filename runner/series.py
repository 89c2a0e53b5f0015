"""The raw series of one trial: what happened in each step, kept unaggregated in series.npz."""

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from runner.errors import StudyError
from runner.jsonfile import write_bytes

_PER_STEP = ("step_ms", "enqueue_ms", "wait_ms", "shape", "loss", "data")
_TABLES = ("data", "evaluations")
# The archive's comment is the checksum of everything before it: a file can be checked without being unpacked.
_SIZE = len("crc32=01234567")
# Of each file in a ZIP archive: method, packed size, size, lengths of name and extra field (APPNOTE.TXT, 4.3.7).
_LOCAL_HEADER = Struct("<8xH8xIIHH")


@dataclass(frozen=True, eq=False)
class Series:
    """Arrays of one trial; n is the number of steps taken.

    step_ms, enqueue_ms, wait_ms: float64 (n,): the step on the device's clock, the host's time to hand it over, the
        time spent waiting for its data.
    shape: int64 (n,): which input shape the step had, counted from 0 in order of first appearance.
    loss: (n,) in the loss's own type: the bits are what is compared.
    data: int64 (n, 2): the digest of the step's inputs and targets.
    predictions: (at most 65536,): predicted classes or values at evenly spread places of the test set.
    sketch: float32 (4096,): a signed sum of the final weights; the distance of two sketches estimates the Euclidean
        distance of the weights, with a relative standard error of 1.1 % where differences spread over the tensors.
    evaluated: int64 (e,): the steps after which the test set was evaluated; evaluations: float64 (e, m), one column
        for each name in evaluation_names: str (m,).
    """

    step_ms: np.ndarray
    enqueue_ms: np.ndarray
    wait_ms: np.ndarray
    shape: np.ndarray
    loss: np.ndarray
    data: np.ndarray
    predictions: np.ndarray
    sketch: np.ndarray
    evaluated: np.ndarray
    evaluations: np.ndarray
    evaluation_names: np.ndarray

    def write(self, path: Path) -> None:
        """Write series.npz."""
        buffer = io.BytesIO()
        with ZipFile(buffer, "w") as archive:
            for field in fields(self):
                _pack(archive, field.name, getattr(self, field.name))
            archive.comment = bytes(_SIZE)
        content = buffer.getvalue()[:-_SIZE]
        write_bytes(path, content + _checksum(content))

    @classmethod
    def read(cls, path: Path) -> "Series":
        """Read what `write` wrote. Raises StudyError naming the path and what is wrong for a damaged file."""
        try:
            return _made(_arrays(path.read_bytes()))
        except Exception as error:  # zipfile, zlib and numpy have no error in common for what damage does to them
            remedy = "restore it or set its trial's folder aside"
            raise StudyError(f"{path}: not a series of this version ({error}); {remedy}") from error


_NAMES = {field.name for field in fields(Series)}


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


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    if _sound(content):
        return {name.removesuffix(".npy"): _array(raw) for name, raw in _members(content)}
    with ZipFile(io.BytesIO(content)) as archive:  # written before there were checksums, or damaged
        if archive.comment:
            raise ValueError("its checksum does not fit")
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in an archive that `write` made and that is sound: zipfile would check all of it once more."""
    start = 0
    while content.startswith(b"PK\3\4", start):
        method, packed, size, name, extra = _LOCAL_HEADER.unpack_from(content, start)
        named = start + _LOCAL_HEADER.size
        begin = named + name + extra
        start = begin + packed
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


def _made(arrays: dict[str, np.ndarray]) -> Series:
    if arrays.keys() != _NAMES:
        raise ValueError(f"it has the arrays {', '.join(sorted(arrays))}; {', '.join(sorted(_NAMES))} are due")
    for name, array in arrays.items():
        if array.ndim != 1 + (name in _TABLES) or (array.dtype.kind not in "fiu" and name != "evaluation_names"):
            raise ValueError(f"{name} has {array.ndim} dimensions of {array.dtype}")
    lengths = {name: len(arrays[name]) for name in _PER_STEP}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the steps differ in number: {lengths}")
    due = len(arrays["evaluated"]), len(arrays["evaluation_names"])
    if arrays["evaluations"].shape != due:
        raise ValueError(f"evaluations has the shape {arrays['evaluations'].shape}, {due} is due")
    return Series(**arrays)
