"""JSON files that no reader ever sees half written."""

import json
import math
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from runner.errors import StudyError, reason

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")


def plain(value: Any) -> Any:
    """The value with NaN and infinities as null: they are no JSON. Where bits matter, series.npz has them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def canonical(value: Any) -> str:
    """One text for one value, whatever the order of its keys: what digests of settings are taken over."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_bytes(path: Path, content: bytes) -> None:
    """Write aside, flush to disk, rename: a reader finds the old file or the new one, never a part.

    Raises OSError naming the file itself.
    """
    try:
        _write_aside(path, content)
    except OSError as error:
        raise OSError(error.errno, reason(error), str(path)) from error


def _write_aside(path: Path, content: bytes) -> None:
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
        _flush(path.parent)
    except BaseException:  # Ctrl-C too: nothing may stay aside; it is raised again
        with suppress(FileNotFoundError):
            os.unlink(aside)
        raise


def _flush(folder: Path) -> None:
    """Have the folder's entries written too: without it a rename may be lost when the power goes."""
    with suppress(OSError):  # some file systems cannot, and need not
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write a value as sorted, indented JSON, so that equal content is equal bytes."""
    text = json.dumps(plain(value), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode(errors="backslashreplace"))


def read_json(path: Path, schema: int) -> dict[str, Any]:
    """Read an object and check its schema version.

    Raises StudyError naming the path when it is missing, no JSON, or of another version.
    """
    try:
        value = json.loads(_text(path), object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"{path}: cannot be read ({reason(error)}); restore it or set it aside") from error
    if not isinstance(value, dict):
        raise StudyError(f"{path}: holds {json.dumps(value)[:60]}, should be an object; restore it or set it aside")
    if value.get("schema") != schema:
        found = value.get("schema")
        raise StudyError(f"{path}: schema {found}, this version reads schema {schema}; use the version that wrote it")
    return value


def _text(path: Path) -> str:
    text = path.read_bytes().decode()
    if text.startswith("\ufeff"):
        raise ValueError("a byte order mark comes first; save it as UTF-8 without one")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; Python would take the last of equal keys, other readers the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {short(twice)} twice")
    return found


def read_fields(path: Path, schema: int, make: Callable[[dict[str, Any]], T], remedy: str) -> T:
    """Read an object and make something of its fields, as a rule by `of_fields`.

    Raises StudyError naming path, field, what was found and the remedy, if `make` raises ValueError.
    """
    found = read_json(path, schema)
    del found["schema"]
    try:
        return make(found)
    except ValueError as error:
        raise StudyError(f"{path}: {error}; {remedy}") from error


def of_fields(kind: type[D], found: Any, part: str = "") -> D:
    """The dataclass with these fields, which must be there, all of them, and of their types.

    Nothing is converted: where a number is due, neither a word nor NaN will do. `part` is the name of `found` in a
    larger object. Raises ValueError naming the field and what it holds.
    """
    where = f"{part} " if part else ""
    if not isinstance(found, dict):
        raise ValueError(f"{where}holds {short(found)}, should be an object")
    names = _names(kind)
    for what, wrong in (("lacks", names - found.keys()), ("has unknown", found.keys() - names)):
        if wrong:
            raise ValueError(f"{where}{what} {', '.join(sorted(wrong))}")
    return _checked(kind(**found), f"{part}." if part else "")


@cache
def _names(kind: type[D]) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def _checked(value: D, prefix: str) -> D:
    from pydantic import ValidationError

    try:
        checked: D = _checker(type(value)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, due = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Input ")
        raise ValueError(f"{prefix}{field} holds {short(first['input'])}, {due}") from error
    return checked


@cache
def _checker(kind: type[D]) -> "TypeAdapter[D]":
    from pydantic import ConfigDict, TypeAdapter, with_config  # takes 0.05 s, which no `--help` should pay

    strict = ConfigDict(strict=True, allow_inf_nan=False, revalidate_instances="always")
    return TypeAdapter(with_config(strict)(kind))


def short(value: Any, size: int = 60) -> str:
    """A value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= size else f"{text[:size]} ..."
