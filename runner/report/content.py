"""What a report says, in order, for report.md and report.html alike: titles, lines, tables and blocks to be copied."""

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from runner.report.answer import opening, sentence
from runner.report.calls import call_lines, call_rows
from runner.report.doctor import doctor_lines
from runner.report.headline import headline
from runner.report.notes import notes
from runner.report.recipe import recipe_lines, recipe_rows
from runner.report.repeatability import repeatability
from runner.report.table import header, more_figures, rows
from runner.report.why import change_lines, kernel_lines, short_lines, why_lines
from runner.report.words import phase_of

MOST_LINES = 60  # of a list: a study of a thousand trials that failed must stay readable
LONGEST_REASON = 300  # characters
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
    "calls": "A step is one call of the module, by the device's clock when it is warm; the first step is the process's "
    "first call by the host's. Distinct results count what processes gave, each with all of its calls.",
    "infer": "A step is one batch answered: latency is its time on an idle device, samples/s the throughput with the "
    'next batch always waiting. "3 of 5" distinct outputs are three different digests of all outputs in five trials.',
}


@dataclass(frozen=True)
class Section:
    """A part of a report: a table whose first row is its header, a block to be copied as it is, lines of a list."""

    title: str
    lines: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    block: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """All of its text."""
        return [*self.lines, *self.block, *(text for row in self.rows for text in row)]


@dataclass(frozen=True)
class Content:
    """A report: title, the answer in a sentence, what stands above the table, the table, how to read it, the rest."""

    title: str
    sentence: str
    opening: list[str]
    table: list[list[str]]
    told: str
    sections: list[Section]


def content_of(summary: dict[str, Any], asked: dict[str, Any] | None = None) -> Content:
    """The report's content; `asked`, what study.json holds, says how to repeat the study."""
    lines, table = [*opening(summary), *short_lines(summary)], [header(summary), *rows(summary)]
    found = _sections(summary, asked)
    said = "\n".join([*lines, *(text for row in table for text in row), *(text for one in found for text in one.words)])
    return Content(headline(summary), sentence(summary), lines, table, how_to_read(summary, said), found)


def how_to_read(summary: dict[str, Any], text: str = "") -> str:
    """What the table's figures are, for the phases that are in it, and the terms that stand in the report's text."""
    phases = dict.fromkeys(phase_of(cell) for cell in summary["cells"])
    terms = [words for term, words in TERMS.items() if re.search(term, text)]
    return " ".join([*HOW_TO_READ.split(), *(IN_PHASE[phase] for phase in phases), *terms])


def _sections(summary: dict[str, Any], asked: dict[str, Any] | None) -> list[Section]:
    """Those that have anything to say."""
    published = recipe_rows(summary)
    sections = [
        Section("Published beside measured", recipe_lines(summary) if published else [], published),
        Section("Calls", call_lines(summary), call_rows(summary)),
        Section("Doctor", doctor_lines(summary)),
        Section("More figures", rows=more_figures(summary)),
        Section("Notes", notes(summary)),
        Section("Repeatability", repeatability(summary)),
        Section("Why they differ", why_lines(summary)),
        Section("Kernels", kernel_lines(summary)),
        Section("What the change did", change_lines(summary)),
        Section("Seeds beside implementation", _noise(summary)),
        Section("Speed figures left out", _left_out(summary)),
        Section("Trials that did not finish", _few(_unfinished(summary))),
        Section("Records set aside", _few(summary["damaged"])),
        Section("Environment", block=_environments(summary, asked)),
        Section("How to repeat it", *_repeat(asked)) if asked else Section(""),
    ]
    return [section for section in sections if section.words]


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"and {more} more, which summary.json names"]


def _noise(summary: dict[str, Any]) -> list[str]:
    names = {cell["cell"]: cell["label"] for cell in summary["cells"]}
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


def _unfinished(summary: dict[str, Any]) -> list[str]:
    return [
        f"{cell['label']}, trial {trial['trial']}: {trial['outcome']}, {_short(trial['reason'])}"
        for cell in summary["cells"]
        for trial in cell["unfinished"]
    ]


def _short(reason: str | None) -> str:
    text = " ".join((reason or "no reason given").split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]} ..."


def _environments(summary: dict[str, Any], asked: dict[str, Any] | None) -> list[str]:
    """Every environment as lines for a bug report, with the version that measured."""
    version = [f"cudnn-mode-runner: {asked['version']}"] if asked and "version" in asked else []
    lines = []
    for environment in summary["environments"]:
        known = {key: value for key, value in environment.items() if value not in (None, []) and key != "id"}
        facts = {key: ", ".join(value) if isinstance(value, list) else value for key, value in known.items()}
        lines += [f"environment: {environment['id']}", *version, *(f"{key}: {fact}" for key, fact in facts.items())]
    return lines


def _repeat(asked: dict[str, Any]) -> tuple[list[str], list[list[str]], list[str]]:
    """Lines, no table, and the command without where its results went; neither for a study without a command."""
    command = [word for word in asked.get("command", []) if not word.startswith(("study=", "tracking="))]
    if not command:
        return [], [], []
    names = {"version": "cudnn-mode-runner", "started": "started", "rounds": "rounds in all:"}
    facts = [f"{words} {asked[name]}" for name, words in names.items() if name in asked]
    return [", ".join([*facts, "in the environment above"])], [], [shlex.join(command)]
