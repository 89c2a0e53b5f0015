"""The commands that README.md and docs/ show, as a reader would copy them."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)


def commands(page: Path) -> list[str]:
    """Every command of ours on a page: of its blocks of code, those that start `python -m runner`."""
    text = page.read_text(encoding="utf-8")
    fenced = "\n".join(FENCED.findall(text))
    indented = "\n".join(line[4:] for line in FENCED.sub("", text).splitlines() if line.startswith("    "))
    lines = f"{fenced}\n{indented}".replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [" ".join(shlex.join(_words(part)).split()) for part in parts if part.startswith("python -m runner")]


def _words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


ALL = sorted({command for page in PAGES for command in commands(page)})


def of(module: str) -> list[list[str]]:
    """The words after `python -m MODULE` of each command that calls this module."""
    called = [shlex.split(command)[2:] for command in ALL]
    return [words[1:] for words in called if words[0] == module]
