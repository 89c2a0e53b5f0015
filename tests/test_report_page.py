"""report.html: that it says what report.md says, opens alone, is the same for equal records, and never fails."""

import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from factory import GPU, Plant, four_modes, make_cell, make_study
from summaries import make_summary
from test_report import EVIL, planted_evil

from runner.jsonfile import write_json
from runner.mode import MODES
from runner.report import write_report
from runner.report.answer import sentence
from runner.report.content import MOST_LINES, content_of
from runner.report.html import page
from runner.report.markdown import markdown
from runner.report.notes import notes
from runner.report.text import one_line
from runner.study import Study

sys.path.append(str(Path(__file__).parent.parent / "scripts"))
from synthetic_study import cell, make

COMMAND = ["python", "-m", "runner", "-m", "cudnn=glob(*)", "trials=5", "study=/home/me/s", "tracking=off"]
SVG = "http://www.w3.org/2000/svg"
SHAPES = ["svg", "style", "defs", "g", "path", "use", "text", "tspan", "clipPath", "rect"]
PLOTS = ["tradeoff", "step_time", "total_time", "ratios", "losses", "equality"]


@pytest.fixture(autouse=True)
def without_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power goes here."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and its text, piece by piece."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def words(self) -> str:
        return "".join(self.texts)


def parsed(study: Study) -> Parsed:
    write_report(study)
    return Parsed(study.report_html.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, dict[str, Any], Parsed]:
    """The usual study with a command, its summary and its page."""
    study = four_modes(tmp_path_factory.mktemp("usual") / "study")
    write_json(study.folder / "study.json", study.asked() | {"command": COMMAND, "started": "2026-12-01T00:00:00"})
    summary = write_report(study)
    return study, summary, Parsed(study.report_html.read_text(encoding="utf-8"))


def test_page_and_markdown_say_the_same(usual: tuple[Study, dict[str, Any], Parsed]) -> None:
    study, summary, found = usual
    content = content_of(summary, study.asked())
    assert found.texts.count(content.sentence) == 1
    for line in [*content.opening, *(text for one in content.sections for text in [one.title, *one.lines])]:
        assert line in found.texts
    for row in [*content.table, *(row for one in content.sections for row in one.rows)]:
        assert all(text in found.words for text in row)
    assert [one.title for one in content.sections] == [
        line.removeprefix("## ") for line in markdown(summary, study.asked()).splitlines() if line.startswith("## ")
    ]


def test_the_answer_stands_on_top_in_a_sentence(usual: tuple[Study, dict[str, Any], Parsed]) -> None:
    _, summary, _ = usual
    assert sentence(summary) == (
        "Fastest is benchmark (F,T), 20 % faster than default (F,F); "
        "the fastest that repeats bit by bit is deterministic_benchmark (T,T), 10 % faster than default (F,F)."
    )
    assert markdown(summary).splitlines()[2] == f"**{sentence(summary)}**"


def test_the_study_can_be_repeated_and_its_environment_pasted(usual: tuple[Study, dict[str, Any], Parsed]) -> None:
    study, _, found = usual
    command = "python -m runner -m 'cudnn=glob(*)' trials=5"
    assert command in found.texts and f"\n    {command}\n" in study.report_markdown.read_text()
    assert "cudnn-mode-runner 0.1.0, started 2026-12-01T00:00:00, rounds in all: 5, in the environment above" in (
        found.texts
    )
    block = next(text for text in found.texts if text.startswith("environment: "))
    assert block.splitlines()[1:] == [
        "cudnn-mode-runner: 0.1.0",
        "trials: 20",
        "hosts: node1",
        "gpu_uuids: GPU-1",
        "device: cuda",
        "gpu_name: NVIDIA H200",
        "torch: 2.14.1",
    ]


def test_everybody_can_read_it_without_a_network(usual: tuple[Study, dict[str, Any], Parsed]) -> None:
    _, summary, found = usual
    heads = [int(tag[1]) for tag, _ in found.elements if tag in ("h1", "h2", "h3")]
    assert heads[0] == 1 and heads.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(heads))
    assert found.of("html") == [{"lang": "en"}] and len(found.of("title")) == 1
    assert {one["scope"] for one in found.of("th")} == {"col", "row"}
    assert len(found.of("img")) == 6
    assert "benchmark (F,T): 0.8" in str(found.of("img")[3]["alt"])
    addresses = [one.get("src") or one.get("href") for one in found.of("img", "a", "link", "script", "iframe")]
    assert all(str(address).startswith(("data:image/svg+xml;base64,", "#")) for address in addresses)
    assert not found.of("script", "link", "iframe")
    ids = [one["id"] for _, one in found.elements if "id" in one]
    assert len(ids) == len(set(ids))
    assert {f"#{name}" for name in ids} >= {one["href"] for one in found.of("a")}
    assert summary["cells"]


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=3)
    write_report(study)
    paths = [study.report_html, *map(study.plot, PLOTS)]
    first = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    study.plot("once").write_text("a plot of another version")
    write_report(study)
    assert [path.read_bytes() for path in paths] == first
    assert sorted(path.stem for path in study.plots.iterdir()) == sorted(PLOTS)


def test_nothing_that_a_user_names_becomes_markup(tmp_path: Path) -> None:
    study = planted_evil(tmp_path)
    found = parsed(study)
    text = study.report_html.read_text(encoding="utf-8")
    assert not found.of("script")
    assert all(
        str(one.get("href") or one.get("src")).startswith(("#", "data:image/svg")) for one in found.of("a", "img")
    )
    assert {tag for tag, one in found.elements if any(name.startswith("on") for name in one)} == set()
    assert "\x1b" not in text and one_line(EVIL) in found.words
    assert len(found.of("html", "body", "main")) == 3
    for path in study.plots.iterdir():
        assert {one.tag for one in ElementTree.parse(path).iter()} <= {f"{{{SVG}}}{name}" for name in SHAPES}


@pytest.mark.parametrize("broken", ["a plot", "matplotlib"])
def test_a_plot_that_cannot_be_drawn_costs_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fails(*arguments: Any) -> None:
        raise ZeroDivisionError("planted")

    if broken == "a plot":
        monkeypatch.setattr("runner.report.plots.losses", fails)
    else:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = parsed(four_modes(tmp_path / "study", rounds=2))
    lines = [text for text in found.texts if text.startswith("the plot ")]
    if broken == "a plot":
        assert lines == ["the plot losses cannot be drawn (ZeroDivisionError: planted)"]
        assert len(found.of("img")) == 5
    else:
        assert {line.split()[2] for line in lines} >= {*PLOTS} and not found.of("img")
        assert all("ModuleNotFoundError" in line for line in lines)
    assert "Repeatability" in found.texts


def test_a_study_without_a_trial_has_a_page_without_plots(tmp_path: Path) -> None:
    found = parsed(Study.ask(tmp_path / "study", {"rounds": 5, "version": "0.1.0"}, [make_cell()]))
    assert "No ranking: needs finished trials: there are none." in found.texts
    assert "Plots" not in found.texts and not found.of("img")


def test_a_thousand_failures_stay_readable(tmp_path: Path) -> None:
    summary = make_summary(("default", {}))
    summary["cells"][0]["unfinished"] = [
        {"trial": number, "outcome": "failed", "reason": "planted"} for number in range(1000)
    ]
    found = Parsed(page(content_of(summary), [], []))
    assert f"and {1000 - MOST_LINES} more, which summary.json names" in found.texts
    assert f"Trials that did not finish: {MOST_LINES + 1} lines" in found.texts
    assert len(found.of("li")) < MOST_LINES + 20


def answered(*answers: tuple[str, str]) -> dict[str, Any]:
    """A summary whose settings have these answers to `fastest` and `reproducible`; "?" is undecided."""
    summary = make_summary(("default", {}), ("benchmark", {}))
    labels = {cell["label"].split()[0]: cell["label"] for cell in summary["cells"]}
    ratio = summary["cells"][1]["speed"]["ratio_to_baseline"] | {"value": 0.8, "verdict": "faster"}
    summary["cells"][1]["speed"] = summary["cells"][1]["speed"] | {"ratio_to_baseline": ratio}
    summary["cells"][0]["speed"] = summary["cells"][0]["speed"] | {"ratio_to_baseline": ratio | {"baseline": True}}

    def answer(mode: str) -> dict[str, Any]:
        return {"undecided": f"planted {mode}"} if mode in "?!" else {"label": labels[mode], "why": "planted"}

    summary["recommendations"] = [
        {"settings": f"n={index}", "cells": [], "fastest": answer(fast), "reproducible": answer(same)}
        | {"balanced": answer("?" if fast != "!" else "!")}
        for index, (fast, same) in enumerate(answers)
    ]
    return summary


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([("default", "default")], "Fastest is default (F,F), and it repeats bit by bit."),
        (
            [("benchmark", "?")],
            "Fastest is benchmark (F,T), 20 % faster than default (F,F); "
            "which one to take where results must repeat is undecided.",
        ),
        (
            [("?", "default")],
            "Which mode is fastest is undecided; the fastest that repeats bit by bit is default (F,F).",
        ),
        ([("!", "!")], "No ranking: planted !."),
        ([("!", "!"), ("!", "!")], "No ranking: planted !."),
        (
            [("benchmark", "default"), ("benchmark", "?"), ("default", "?")],
            "Fastest: benchmark (F,T) in 2 of 3 settings, default (F,F) in 1. "
            "Fastest of those that repeat bit by bit: undecided in 2 of 3 settings, default (F,F) in 1.",
        ),
        (
            [("benchmark", "default"), ("benchmark", "default")],
            "Fastest: benchmark (F,T) in all 2 settings. "
            "Fastest of those that repeat bit by bit: default (F,F) in all 2 settings.",
        ),
    ],
)
def test_the_sentence_for_each_kind_of_answer(answers: list[tuple[str, str]], words: str) -> None:
    assert sentence(answered(*answers)) == words


def test_few_trials_and_mixed_environments_are_doubts() -> None:
    summary = make_summary(("default", {}), ("benchmark", {}))
    summary["cells"][1]["n"] = 2
    other = summary["environments"][0] | {"id": "f", "gpu_name": "NVIDIA A100", "torch": "2.11.0"}
    summary["environments"].append(other)
    assert notes(summary) == [
        "few trials: a cell has 2 finished trials; intervals are wide, and no mode is called reproducible below 5",
        "the trials were done in 2 environments, which are never pooled: gpu_name, torch differ",
    ]


def test_a_very_large_study_stays_a_readable_file(tmp_path: Path) -> None:
    """1,200 records of 40 cells in 10 settings, of which 4 are drawn."""
    cells = [cell(mode, 1e-4 * (1 + index)) for index in range(10) for mode in MODES.values()]
    study = make(tmp_path / "study", cells, 30)
    found = parsed(study)
    assert study.report_html.stat().st_size < 3_000_000
    assert "4 of 10 settings are drawn." in found.texts
    assert len(found.of("tr")) == 2 * 41
    assert max(len(str(one["alt"])) for one in found.of("img")) < 4000


def test_environments_that_differ_have_a_block_each(tmp_path: Path) -> None:
    def place(cell: Any, number: int) -> dict[str, Any]:
        return GPU | {"gpu_name": f"GPU {number % 2}"}

    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=4, environment=place)
    block = next(text for text in parsed(study).texts if text.startswith("environment: "))
    assert [line for line in block.splitlines() if line.startswith("gpu_name")] == [
        "gpu_name: GPU 0",
        "gpu_name: GPU 1",
    ]
