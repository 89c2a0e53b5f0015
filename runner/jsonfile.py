"""JSON files that no reader ever sees half written."""

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from runner.errors import StudyError


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
    """Write aside, flush to disk, rename: a reader finds the old file or the new one, never a part."""
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:  # Ctrl-C too: nothing may stay aside; it is raised again
        os.unlink(aside)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a value as sorted, indented JSON, so that equal content is equal bytes."""
    text = json.dumps(plain(value), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode(errors="backslashreplace"))


def read_json(path: Path, schema: int) -> dict[str, Any]:
    """Read an object and check its schema version.

    Raises StudyError naming the path when it is missing, no JSON, or of another version.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: cannot be read ({error}); restore it or remove its folder") from error
    if not isinstance(value, dict) or value.get("schema") != schema:
        found = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise StudyError(f"{path}: schema {found}, this version reads schema {schema}; use the version that wrote it")
    return value
