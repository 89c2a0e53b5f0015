"""report.md: the study for people, with nothing in it that the summary does not hold."""

import html
import re
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from runner.report.answer import opening
from runner.report.notes import notes
from runner.report.recipe import recipe_lines, recipe_rows
from runner.report.table import header, main_metric, more_figures, rows
from runner.report.text import one_line
from runner.report.why import change_lines, kernel_lines, short_lines, why_lines
from runner.report.words import bound_words, phase_of, spread_words

# An underscore within a word and brackets are left alone where they mean nothing: people read the source too.
SPECIAL = re.compile(r"[\\`*~|$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|^[-+#=\[]|(?<=\s)#(?=#*$)")
ORDINAL = re.compile(r"^(\d+)([.)])(?=\s|$)")
HOW_TO_READ = """\
Figures are over finished trials, one process each: mean (sample sd) [95 % interval]. The ratio is step time over the
default's, from pairs of trials of the same round on the same device unless it says unpaired; its interval is
simultaneous over all comparisons with that baseline, and it alone gives the verdict. "20 % faster" is 20 % less time a
step. Tuning is what the first step of every input size costs more than the default's in a mode that tunes, the median
over pairs; "none seen" is less than 0.05 s, or not told from 0 by the 95 % interval over pairs. Memory is the largest
of all trials.
"""
TERMS = {
    r"\bplans\b": "A plan is the set of kernels that tuning chose; each process draws its own.",
    r"\bcold\b": "A cold first step reads kernels that its machine had not loaded since its start.",
    r"\binert\b": "Inert: the flags cannot act without CUDA.",
}
IN_PHASE = {
    "train": '"3 of 5" distinct weights are three different digests of the final weights in five trials.',
    "infer": "A step is one batch answered: latency is its time on an idle device, samples/s the throughput with the "
    'next batch always waiting. "3 of 5" distinct outputs are three different digests of all outputs in five trials.',
}


def markdown(summary: dict[str, Any]) -> str:
    """The report's text."""
    title, figures = f"# {escaped(headline(summary))}", table(summary)
    answered = bullets([*opening(summary), *short_lines(summary)])
    details = [
        _recipe(summary),
        _more(summary),
        _section("Notes", notes(summary)),
        _section("Repeatability", _repeatability(summary)),
        _section("Why they differ", why_lines(summary)),
        _section("Kernels", kernel_lines(summary)),
        _section("What the change did", change_lines(summary)),
        _section("Seeds beside implementation", _noise(summary)),
        _section("Speed figures left out", _left_out(summary)),
        _section("Trials that did not finish", _unfinished(summary)),
        _section("Records set aside", summary["damaged"]),
        _section("Environment", _environments(summary)),
    ]
    told = how_to_read(summary, "\n".join([answered, figures, *details]))
    return "\n\n".join(section for section in (title, answered, figures, told, *details) if section) + "\n"


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


def how_to_read(summary: dict[str, Any], text: str = "") -> str:
    """What the table's figures are, for the phases that are in it, and the terms that stand in the report's text."""
    phases = dict.fromkeys(phase_of(cell) for cell in summary["cells"])
    terms = [words for term, words in TERMS.items() if re.search(term, text)]
    return fill(" ".join([HOW_TO_READ.strip(), *(IN_PHASE[phase] for phase in phases), *terms]), 120)


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


def _section(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n{bullets(lines)}" if lines else ""


def _more(summary: dict[str, Any]) -> str:
    lines = more_figures(summary)
    return f"## More figures\n\n{grid(lines)}" if lines else ""


def _recipe(summary: dict[str, Any]) -> str:
    rows = recipe_rows(summary)
    return f"## Published beside measured\n\n{grid(rows)}\n\n{bullets(recipe_lines(summary))}" if rows else ""


def _noise(summary: dict[str, Any]) -> list[str]:
    names = _labels(summary)
    return [f"{names[found['fixed']]}, {found['metric']}: {found['words']}" for found in summary["noise"]]


def _left_out(summary: dict[str, Any]) -> list[str]:
    """A line for each reason of each cell, with the numbers of its trials."""
    lines = []
    for cell in summary["cells"]:
        numbers: dict[str, list[str]] = {}
        for trial in cell["speed"]["left_out"]:
            numbers.setdefault(trial["why"], []).append(str(trial["trial"]))
        for why, trials in numbers.items():
            lines.append(f"{cell['label']}, trial{'s' if len(trials) > 1 else ''} {', '.join(trials)}: {why}")
    return lines


def _repeatability(summary: dict[str, Any]) -> list[str]:
    lines, metric = [], main_metric(summary)
    for cell in summary["cells"]:
        found = cell["reproducibility"]
        if found["verdict"] in (None, "single"):
            continue
        where = [] if found["verdict"] == "bitwise" else [found["sentence"]]
        parts = [*where, bound_words(cell), *spread_words(cell, metric)]
        lines.append(f"{cell['label']}: {'; '.join(parts)}")
    return [*lines, *_spreads_beside(summary)]


def _spreads_beside(summary: dict[str, Any]) -> list[str]:
    """How far the main metric spreads beside the default's, if it does; one line where no cell can be told from it."""
    metric, names = main_metric(summary), _labels(summary)
    spreads = any(cell["metrics"][metric]["sd"] for cell in summary["cells"] if metric in cell["metrics"])
    found = [one for one in summary["modes_noise"] if one["metric"] == metric] if spreads else []
    said, words = f"sd of {metric} beside the default's", {one["words"] for one in found}
    if len(words) == 1 and found[0]["ratio"] is None:
        return [f"{said}: {words.pop()}"]
    return [f"{names[one['cell']]}: {said}: {one['words']}" for one in found]


def _labels(summary: dict[str, Any]) -> dict[str, str]:
    return {cell["cell"]: cell["label"] for cell in summary["cells"]}


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
