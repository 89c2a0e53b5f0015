"""report.md: the study for people, with nothing in it that the summary does not hold."""

import html
import re
from collections.abc import Collection, Iterable
from itertools import compress
from typing import Any

from runner.report.answer import answers
from runner.report.table import header, main_metric, rows
from runner.report.text import one_line
from runner.report.words import bound_words, cell_notes, completeness_words, spread_words

# An underscore within a word and brackets are left alone where they mean nothing: people read the source too.
SPECIAL = re.compile(r"[\\`*~|$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|^[-+#=\[]")
ORDINAL = re.compile(r"^(\d+)([.)])(?=\s|$)")
HOW_TO_READ = """\
Figures are over finished trials, one process each: mean (sample sd) [95 % interval]. The ratio is step time over the
default's, from pairs of trials of the same round on the same device unless it says unpaired; its interval is
simultaneous over all comparisons with that baseline, and it alone gives the verdict. "20 % faster" is 20 % less time a
step. Tuning is what the first step costs more than the default's, the median over pairs; "none seen" is less than
0.05 s, or not told from 0 by the 95 % interval over pairs. Memory is the largest of all trials. "3 of 5" distinct
weights are three different digests of the final weights in five trials.
"""


def markdown(summary: dict[str, Any]) -> str:
    """The report's text."""
    sections = [
        f"# {escaped(headline(summary))}",
        bullets([*completeness_words(summary), *answers(summary)]),
        table(summary),
        HOW_TO_READ.strip(),
        _section("Notes", _notes(summary)),
        _section("Repeatability", _repeatability(summary)),
        _section("Trials that did not finish", _unfinished(summary)),
        _section("Records set aside", summary["damaged"]),
        _section("Environment", _environments(summary)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def headline(summary: dict[str, Any]) -> str:
    """Model, dataset, precision and device of the study, every value that occurs."""
    configs = [cell["config"] for cell in summary["cells"]]
    model, dataset, precision = (_named(configs, key) for key in ("model", "dataset", "precision"))
    devices = dict.fromkeys(_device(environment) for environment in summary["environments"])
    return f"{model} on {dataset}, precision {precision}, {' and '.join(devices) or 'device unknown'}"


def _named(configs: list[dict[str, Any]], key: str) -> str:
    values = [config.get(key) for config in configs]
    names = dict.fromkeys(str(value.get("name")) if isinstance(value, dict) else str(value) for value in values)
    return " and ".join(names)


def _device(environment: dict[str, Any]) -> str:
    return str(environment["gpu_name"] or environment["cpu"] or environment["device"])


def table(summary: dict[str, Any], without: Collection[str] = ()) -> str:
    """The table of the cells, less the columns named."""
    names = header(summary)
    lines = [[escaped(text) for text in line] for line in (names, *rows(summary))]
    lines.insert(1, ["---"] * len(names))
    kept = [name not in without for name in names]
    return "\n".join("| " + " | ".join(compress(line, kept)) + " |" for line in lines)


def bullets(lines: Iterable[str]) -> str:
    """A list, a line an item."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


def escaped(text: str) -> str:
    """One line of text that neither Markdown nor HTML take for their own: a user's settings are in it."""
    return ORDINAL.sub(r"\1\\\2", SPECIAL.sub(r"\\\g<0>", html.escape(one_line(text), quote=False)))


def _section(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n{bullets(lines)}" if lines else ""


def _notes(summary: dict[str, Any]) -> list[str]:
    rocm = any(environment["hip"] for environment in summary["environments"])
    on_cuda = {environment["id"]: environment["device"] == "cuda" for environment in summary["environments"]}
    notes = ["this is a ROCm build: the flags steer MIOpen and mean other things than with cuDNN"] if rocm else []
    if on_cuda and not any(on_cuda.values()):
        notes.append("the flags cannot act here, no CUDA in use: differences between modes are noise, none is ranked")
    for cell in summary["cells"]:
        notes += [f"{cell['label']}: {note}" for note in cell_notes(cell, on_cuda.get(cell["environment"], False))]
    return notes


def _repeatability(summary: dict[str, Any]) -> list[str]:
    lines = []
    for cell in summary["cells"]:
        found = cell["reproducibility"]
        if found["verdict"] in (None, "single"):
            continue
        where = [] if found["verdict"] == "bitwise" else [found["sentence"]]
        parts = [*where, bound_words(cell), *spread_words(cell, main_metric(summary))]
        lines.append(f"{cell['label']}: {'; '.join(parts)}")
    return lines


def _unfinished(summary: dict[str, Any]) -> list[str]:
    return [
        f"{cell['label']}, trial {trial['trial']}: {trial['outcome']}, {_short(trial['reason'])}"
        for cell in summary["cells"]
        for trial in cell["unfinished"]
    ]


def _short(reason: str | None, size: int = 300) -> str:
    text = " ".join((reason or "no reason given").split())
    return text if len(text) <= size else f"{text[:size]} ..."


def _environments(summary: dict[str, Any]) -> list[str]:
    return [_environment(environment) for environment in summary["environments"]]


def _environment(environment: dict[str, Any]) -> str:
    known = {
        key: value for key, value in environment.items() if value not in (None, []) and key not in ("id", "trials")
    }
    facts = [f"{key} {' '.join(value) if isinstance(value, list) else value}" for key, value in known.items()]
    return f"{environment['id']}, finished trials {environment['trials']}: {', '.join(facts)}"
