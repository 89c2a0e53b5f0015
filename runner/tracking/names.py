"""Names and texts in the form and length that every MLflow store takes, whatever a user's settings hold."""

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
# Line ends and tabs apart. PostgreSQL takes no zero, and nobody wants the others on a page or in a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(name: str) -> str:
    """The name itself if MLflow takes it, else a readable form of it with a digest; different names stay different."""
    # A name that already looks marked is marked too: it could be another name's clean form.
    if _CLEAN.fullmatch(name) and len(name) <= NAME_LIMIT and not _MARKED.search(name):
        return name
    parts = [re.sub(r"[^\w.\- ]", "_", part).strip(".") or "_" for part in name.split("/")]
    return _marked("/".join(parts), name)


def title(name: str) -> str:
    """A name for people that a search finds: itself if it is one line of the right length, else a readable form."""
    # A search quotes a value with either quote and knows no way to write both.
    if name.isprintable() and 0 < len(name) <= NAME_LIMIT and not {"'", '"'} <= set(name):
        return name
    return _marked("".join(one if one.isprintable() and one not in "'\"" else "_" for one in name), name)


def unslashed(name: str) -> str:
    """A name without slashes: itself, or a readable form with a digest."""
    return _marked(name.replace("/", "_"), name) if "/" in name else name


def folder(name: str) -> str:
    """A relative path that stays where it is put and whose parts every file system takes: they count bytes."""
    cleaned = clean(name)
    return cleaned if len(cleaned.encode()) <= NAME_LIMIT else clean(ascii(name))


def _marked(readable: str, name: str) -> str:
    mark = "-" + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return readable[: NAME_LIMIT - len(mark)] + mark


def cut(text: str, limit: int) -> str:
    """The text, at most `limit` characters of it; a cut can be seen, and so can what is no text."""
    text = text.encode(errors="backslashreplace").decode()
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def line(text: str, limit: int) -> str:
    """The same in one line."""
    return cut(" ".join(text.split()), limit)


def masked(uri: str) -> str:
    """An address, or a text with addresses, without the passwords in them."""
    return re.sub(r"(://[^/@:\s]*:)[^/@\s]+@", r"\1***@", uri)


def params(settings: dict[str, Any]) -> dict[str, str]:
    """Flat settings as MLflow's params, written as on the command line: true, null, 0.1, [1,2], plain text."""
    texts = {key: value if isinstance(value, str) else canonical(value) for key, value in settings.items()}
    return {clean(key): cut(text, PARAM_LIMIT) for key, text in texts.items()}


def tags(values: dict[str, str]) -> dict[str, str]:
    """Texts as MLflow's tags."""
    return {clean(key): cut(value, TAG_LIMIT) for key, value in values.items()}
