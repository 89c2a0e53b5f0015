"""Names and texts in the form and length that every MLflow store takes."""

import hashlib
import re
from typing import Any

from runner.jsonfile import canonical

NAME_LIMIT = 250
PARAM_LIMIT = 6000
TAG_LIMIT = 8000
_CUT = " ... (cut)"

# What MLflow takes on every system: no colon (not on Windows), no empty part, no "." or ".." between slashes.
_PART = r"(?!\.{1,2}(?:/|\Z))[\w.\- ]+"
_CLEAN = re.compile(rf"{_PART}(?:/{_PART})*")
_MARKED = re.compile(r"-[0-9a-f]{12}\Z")


def clean(name: str) -> str:
    """The name itself if MLflow takes it, else a readable form of it with a digest; different names stay different."""
    # A name that already looks marked is marked too: it could be another name's clean form.
    if _CLEAN.fullmatch(name) and len(name) <= NAME_LIMIT and not _MARKED.search(name):
        return name
    mark = "-" + hashlib.sha256(name.encode()).hexdigest()[:12]
    parts = [re.sub(r"[^\w.\- ]", "_", part).strip(".") or "_" for part in name.split("/")]
    return "/".join(parts)[: NAME_LIMIT - len(mark)] + mark


def cut(text: str, limit: int) -> str:
    """The text, at most `limit` characters of it; a cut can be seen."""
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def params(settings: dict[str, Any]) -> dict[str, str]:
    """Flat settings as MLflow's params, written as on the command line: true, null, 0.1, [1,2], plain text."""
    texts = {key: value if isinstance(value, str) else canonical(value) for key, value in settings.items()}
    return {clean(key): cut(text, PARAM_LIMIT) for key, text in texts.items()}


def tags(values: dict[str, str]) -> dict[str, str]:
    """Texts as MLflow's tags."""
    return {clean(key): cut(value, TAG_LIMIT) for key, value in values.items()}
