"""report.md: the study for terminals and pull requests."""

import html
import re
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from runner.report.content import Section, content_of
from runner.report.table import header, rows
from runner.report.text import one_line

# An underscore within a word and brackets are left alone where they mean nothing: people read the source too.
SPECIAL = re.compile(r"[\\`*~|$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|^[-+#=\[]|(?<=\s)#(?=#*$)")
ORDINAL = re.compile(r"^(\d+)([.)])(?=\s|$)")


def markdown(summary: dict[str, Any], asked: dict[str, Any] | None = None) -> str:
    """The report's text; with `asked`, what study.json holds, it says how to repeat the study."""
    content = content_of(summary, asked)
    parts = [
        f"# {escaped(content.title)}",
        f"**{escaped(content.sentence)}**",
        bullets(content.opening),
        grid(content.table),
        fill(content.told, 120),
        *map(_section, content.sections),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(summary: dict[str, Any]) -> str:
    """The table of the cells."""
    return grid([header(summary), *rows(summary)])


def grid(lines: list[list[str]]) -> str:
    """A table of a header and rows of text."""
    texts = [[escaped(text) for text in line] for line in lines]
    texts.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in texts)


def bullets(lines: Iterable[str]) -> str:
    """A list, a line an item."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


def escaped(text: str) -> str:
    """One line of text that neither Markdown nor HTML take for their own: a user's settings are in it."""
    return ORDINAL.sub(r"\1\\\2", SPECIAL.sub(r"\\\g<0>", html.escape(one_line(text), quote=False)))


def _section(section: Section) -> str:
    """Under its title the table, the block, which four spaces keep as it is, and the list."""
    block = "\n".join(f"    {one_line(line)}" for line in section.block)
    parts = [f"## {section.title}", grid(section.rows) if section.rows else "", block, bullets(section.lines)]
    return "\n\n".join(part for part in parts if part)
